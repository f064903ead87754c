"""Every way a request can fail, with the words of its page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of failure; `meaning` and `remedy` are what its page says."""

    slug: str
    status: int
    title: str
    meaning: str
    remedy: str

    @property
    def path(self) -> str:
        return f"/problems/{self.slug}"


BAD_REQUEST = Problem(
    "bad-request",
    400,
    "Bad request",
    "The request broke off, is not valid HTTP or could be read in two ways, has an overlong path or header, or a "
    "compressed body that is not exactly one complete gzip stream.",
    "Send it again; if it keeps failing, look at what stands between the client and this service.",
)
NOT_JSON = Problem(
    "not-json",
    400,
    "The body is not JSON",
    "The body is not UTF-8 JSON as this service takes it. NaN, Infinity, a member name given twice in one object, "
    "half of a surrogate pair and more than 32 levels of nesting are refused too, because not every reader of the "
    "event would see the same thing.",
    "Let a JSON library write the body. The detail says where reading stopped.",
)
UNAUTHORIZED = Problem(
    "unauthorized",
    401,
    "A valid API key is needed",
    "The key is missing, malformed, unknown, revoked or expired; the answer is the same for each. Two different keys "
    "in one request count as malformed.",
    "Send the key as Authorization: Bearer KEY, as X-API-Key: KEY, or as user name or password of HTTP Basic.",
)
MISSING_SCOPE = Problem(
    "missing-scope",
    403,
    "The key may not do this",
    "The key is valid but lacks the scope that this call needs.",
    "Use a key with the scope named in the detail. A key with tenant:manage creates one under Keys in the console. An "
    "operator creates one with inbox keys create TENANT --scope all, or --scope admin for the tenant system.",
)
TENANT_INACTIVE = Problem(
    "tenant-inactive",
    403,
    "The tenant is not active",
    "The key is valid, but its tenant is suspended or deleted.",
    "Ask whoever runs the service. The tenant's events are kept meanwhile.",
)
PREFETCH_REFUSED = Problem(
    "prefetch-refused",
    403,
    "A poll is not for prefetching",
    "A browser asked for the inbox ahead of time. A poll marks events as delivered, so only a real one may happen.",
    "Poll without the headers Purpose or Sec-Purpose, or look with mode=peek from a program.",
)
NOT_FOUND = Problem(
    "not-found",
    404,
    "There is nothing here",
    "No such path or thing exists, or it belongs to another tenant, which looks the same.",
    "Check the path against /docs.",
)
METHOD_NOT_ALLOWED = Problem(
    "method-not-allowed",
    405,
    "This path takes another method",
    "The path exists, but not with this method. HEAD on the inbox is refused because a poll changes things.",
    "The header Allow lists what the path takes.",
)
IDEMPOTENCY_CONFLICT = Problem(
    "idempotency-conflict",
    409,
    "The idempotency key stands for another event",
    "An event with this idempotency key was stored before, and it differs from this one. Nothing was stored.",
    "Use a new key for a new event, and the same key only to repeat exactly the same one.",
)
EVENT_LEASED = Problem(
    "event-leased",
    409,
    "The event is leased",
    "A consumer has the event under a lease. Replaying it now would put it into two hands.",
    "Wait until it is acknowledged or released or its lease is over (lease_expires_at), then replay it.",
)
TOO_MANY_INBOXES = Problem(
    "too-many-inboxes",
    409,
    "The tenant has as many inboxes as it can have",
    "Every named inbox keeps a copy of each event that it takes, so their number is limited.",
    "Remove one that is no longer polled, or let several consumers share one with mode=lease.",
)
TOO_MANY_KEYS = Problem(
    "too-many-keys",
    409,
    "The tenant has as many keys as it can have",
    "The number of keys that work at the same time is limited.",
    "Revoke one that is no longer used: GET /keys says when each was last used.",
)
ALREADY_EXISTS = Problem(
    "already-exists",
    409,
    "There is one of that id already",
    "The id belongs to another tenant, deleted ones included. Nothing was changed.",
    "Choose another id, or leave it out and get one.",
)
EMAIL_TAKEN = Problem(
    "email-taken",
    409,
    "The e-mail belongs to another tenant",
    "No two tenants have the same e-mail, upper and lower case aside. Nothing was changed.",
    "Use another e-mail, or give the other tenant a new one first.",
)
WRONG_STEP = Problem(
    "wrong-step",
    409,
    "Invalid status transition",
    "A tenant goes from UNVALIDATED to VALIDATED to REGISTERED. Each of them can be suspended, and a suspended tenant "
    "goes back to the status before.",
    "Change to one of the statuses that the detail names, or send force: true, which the audit log will show.",
)
NOT_ALLOWED = Problem(
    "not-allowed",
    409,
    "This cannot be done to it",
    "The call makes no sense for this tenant or key, as the detail says. Nothing was changed.",
    "Read the detail.",
)
PRECONDITION_FAILED = Problem(
    "precondition-failed",
    412,
    "Inbox already exists",
    "The header If-None-Match: * asks to create an inbox and never to change one, and the inbox exists. Nothing was "
    "changed.",
    "Choose another name, or leave the header out to change which events the inbox takes.",
)
TOO_LARGE = Problem(
    "too-large",
    413,
    "The body is too large",
    "An event, or a whole batch, is above the limit. A compressed body counts by its decompressed size. Nothing was "
    "stored.",
    "Send less: for example a link to the large part in place of the part itself, or smaller batches.",
)
UNSUPPORTED_MEDIA_TYPE = Problem(
    "unsupported-media-type",
    415,
    "Unsupported media type or content coding",
    "The Content-Type is not JSON, its charset is not UTF-8, or the Content-Encoding is not gzip. The header "
    "Accept-Encoding is in the answer if it is the Content-Encoding.",
    "Send Content-Type: application/json, and Content-Encoding: gzip only if the body is compressed.",
)
INVALID_REQUEST = Problem(
    "invalid-request",
    422,
    "The request has the wrong form",
    "The body is JSON, but its members, or the parameters of the call, are not what this call takes. "
    "Nothing was stored or handed out.",
    "Each entry of errors points at a member or parameter and says what is wrong with it.",
)
RATE_LIMITED = Problem(
    "rate-limited",
    429,
    "Too many requests",
    "The tenant makes more requests a second than it may. Nothing was stored or handed out.",
    "Wait for the seconds in Retry-After. The header RateLimit, on every answer, says how much is left.",
)
TOO_MANY_FAILURES = Problem(
    "too-many-failures",
    429,
    "Too many calls without a valid key",
    "This address has called without a valid API key too often, so keys that are new here are not looked up for now.",
    "Stop whatever calls with a missing, mistyped or revoked key, and wait for the seconds in Retry-After.",
)
INTERNAL_ERROR = Problem(
    "internal-error",
    500,
    "Something went wrong here",
    "The service met a fault of its own. It was logged under the request id.",
    "Try again, with an idempotency key if you are sending; if it stays, report the request id.",
)
OVERLOADED = Problem(
    "overloaded",
    503,
    "Too many request bodies at once",
    "The service is parsing as many request bodies as fit in its memory. Nothing was stored or changed.",
    "Try again after the seconds in Retry-After. A smaller batch needs less room.",
)
UNAVAILABLE = Problem(
    "unavailable",
    503,
    "The store does not answer",
    "The store is busy, out of reach, out of space, or has more to delete than one call does. The call may or may not "
    "have taken effect.",
    "Try again after the seconds in Retry-After, with an idempotency key if you are sending.",
)

PROBLEMS = {problem.slug: problem for problem in list(globals().values()) if isinstance(problem, Problem)}
