// The API key of this tab and the principal it belongs to. The key is kept in sessionStorage.

const STORAGE_KEY = "inbox-key";

export const session = {
  key: sessionStorage.getItem(STORAGE_KEY),
  me: null,
  // Unsent input of the Send view.
  draft: null,

  start(key, me) {
    sessionStorage.setItem(STORAGE_KEY, key);
    Object.assign(session, { key, me });
  },

  end() {
    sessionStorage.removeItem(STORAGE_KEY);
    Object.assign(session, { key: null, me: null, draft: null });
  },

  hasScope(...anyOf) {
    return anyOf.some((scope) => session.me?.scopes.includes(scope));
  },
};
