// Who is signed in. The key lives in this tab's sessionStorage and is sent to this service only.

const KEY = "inbox-key";

export const session = {
  key: sessionStorage.getItem(KEY),
  me: null,
  // What was typed in the view Send, so that a look at another one does not lose it.
  draft: null,

  begin(key, me) {
    sessionStorage.setItem(KEY, key);
    Object.assign(session, { key, me });
  },

  end() {
    sessionStorage.removeItem(KEY);
    Object.assign(session, { key: null, me: null, draft: null });
  },

  may(...scopes) {
    return scopes.some((scope) => session.me?.scopes.includes(scope));
  },
};
