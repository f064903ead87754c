"""Every problem of the API (RFC 9457): status, title, and the text of its page under /problems.

The `detail` of a response is the error's message, from inbox/errors.py or the place that raises it. The messages of a
500 and of an unavailable store are for the log, so these responses have the `meaning` as their detail. So do the
responses to requests that the server or Flask refuses, except a 405. inbox/api/problems.py maps errors to problems.
"""

from dataclasses import dataclass

from inbox import errors


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of failure. OpenAPI shows `example` as the detail, or `meaning` if `example` is empty."""

    slug: str
    status: int
    title: str
    meaning: str
    remedy: str
    example: str = ""

    @property
    def path(self) -> str:
        return f"/problems/{self.slug}"


BAD_REQUEST = Problem(
    "bad-request",
    400,
    "Bad request",
    "The request was cut off, is ambiguous or not valid HTTP, has an unknown method or an overlong path or header, "
    "repeats a header that is allowed only once, is a poll with a body, or has a compressed body that is not exactly "
    "one complete gzip stream.",
    "Poll without a body. Otherwise send the request again; if it keeps failing, check the client and the proxies "
    "between it and this service.",
)
NOT_JSON = Problem(
    "not-json",
    400,
    "Body is not valid JSON",
    "The body is not JSON in UTF-8. NaN, Infinity, duplicate member names, unpaired surrogates and more than 32 levels "
    "of nesting are also rejected, because JSON parsers disagree about them.",
    "Serialize the body with a JSON library. The detail says what is wrong.",
    "Invalid JSON at line 1, column 12.",
)
UNAUTHORIZED = Problem(
    "unauthorized",
    401,
    "Missing or invalid API key",
    "The API key is missing, malformed, unknown, revoked or expired. The response is the same in each case. Two "
    "different keys in one request count as malformed.",
    "Send the key as Authorization: Bearer KEY, as X-API-Key: KEY, or as user name or password of HTTP Basic.",
    str(errors.Unauthenticated()),
)
MISSING_SCOPE = Problem(
    "missing-scope",
    403,
    "Missing scope",
    "The API key is valid but lacks the scope that this request needs.",
    "Use a key with the scope named in the detail. A key with tenant:manage can create one under Keys in the console. "
    "An operator creates one with inbox keys create TENANT --scope all. For the scope admin, an operator uses inbox "
    "keys create system --scope admin.",
)
TENANT_INACTIVE = Problem(
    "tenant-inactive",
    403,
    "Tenant is not active",
    "The API key is valid, but its tenant is suspended or deleted.",
    "Ask the operator of the service. The tenant's events are kept meanwhile.",
    "The tenant of this key is not active.",
)
PREFETCH_REFUSED = Problem(
    "prefetch-refused",
    403,
    "Prefetch refused",
    "A browser tried to prefetch an inbox. A poll marks events as delivered, so prefetches are refused.",
    "Poll without the headers Sec-Purpose, Purpose, X-Purpose and X-Moz, or use mode=peek from a program.",
    "Prefetch requests are refused. Remove the headers Sec-Purpose, Purpose, X-Purpose and X-Moz.",
)
NOT_FOUND = Problem(
    "not-found",
    404,
    "Not found",
    "The path or resource does not exist, or the resource belongs to another tenant.",
    "Check the path against /docs.",
)
METHOD_NOT_ALLOWED = Problem(
    "method-not-allowed",
    405,
    "Method not allowed",
    "The path exists, but does not support this method. HEAD on an inbox is refused because a poll changes events.",
    "The header Allow lists the supported methods.",
)
IDEMPOTENCY_CONFLICT = Problem(
    "idempotency-conflict",
    409,
    "Idempotency key already used",
    "A different event with this idempotency key was stored before. Nothing was stored.",
    "Use a new key for a new event, and the same key only to repeat exactly the same one.",
    str(errors.IdempotencyConflict([])),
)
EVENT_LEASED = Problem(
    "event-leased",
    409,
    "Event is leased",
    "A consumer has leased the event. Replaying it now would deliver it twice.",
    "Wait until it is acknowledged or released, or until its lease expires (lease_expires_at), then replay it.",
    str(errors.EventLeased()),
)
TOO_MANY_INBOXES = Problem(
    "too-many-inboxes",
    409,
    "Inbox limit reached",
    "Every named inbox stores a copy of each matching event, so the number of inboxes per tenant is limited.",
    "Delete an inbox that is no longer polled, or let several consumers share one with mode=lease.",
    str(errors.TooManyInboxes(50)),
)
TOO_MANY_KEYS = Problem(
    "too-many-keys",
    409,
    "API key limit reached",
    "The number of active keys per tenant is limited.",
    "Revoke a key that is no longer used. GET /keys shows when each key was last used.",
    str(errors.TooManyKeys(100)),
)
ALREADY_EXISTS = Problem(
    "already-exists",
    409,
    "Tenant ID already exists",
    "Another tenant, possibly a deleted one, has this ID. Nothing was changed.",
    "Choose another ID, or omit it to get a generated one.",
    str(errors.TenantExists("acme")),
)
EMAIL_TAKEN = Problem(
    "email-taken",
    409,
    "Email address already in use",
    "Email addresses are unique across tenants, ignoring case. Nothing was changed.",
    "Use a different address, or change the other tenant's address first.",
    str(errors.EmailTaken()),
)
INVALID_STATUS_TRANSITION = Problem(
    "wrong-step",
    409,
    "Invalid status transition",
    "A tenant's status changes from UNVALIDATED to VALIDATED to REGISTERED. From each of them a tenant can be "
    "suspended, and a suspended tenant can return to its previous status.",
    "Change to one of the statuses that the detail lists, or send force: true, which the audit log records.",
    "Cannot change status from UNVALIDATED to REGISTERED. Allowed: VALIDATED, SUSPENDED.",
)
NOT_ALLOWED = Problem(
    "not-allowed",
    409,
    "Operation not allowed",
    "The operation is not possible for this tenant or key. Nothing was changed.",
    "The detail gives the reason.",
    "A revoked or expired key cannot be rotated. Create a new one.",
)
PRECONDITION_FAILED = Problem(
    "precondition-failed",
    412,
    "Inbox already exists",
    "The header If-None-Match: * only allows creating an inbox, and the inbox exists. Nothing was changed.",
    "Choose another name, or omit the header to change which events the inbox receives.",
    str(errors.InboxExists("crm")),
)
TOO_LARGE = Problem(
    "too-large",
    413,
    "Request body too large",
    "The body, or an event of a batch, exceeds its limit. The decompressed size of a compressed body counts. Nothing "
    "was stored.",
    "Send less: smaller batches, or a link instead of the large part of the payload.",
    "The body is larger than 262144 bytes.",
)
UNSUPPORTED_MEDIA_TYPE = Problem(
    "unsupported-media-type",
    415,
    "Unsupported media type or content coding",
    "The Content-Type is not JSON, its charset is not UTF-8, or the Content-Encoding is not gzip. If the "
    "Content-Encoding is the cause, the response has the header Accept-Encoding.",
    "Send Content-Type: application/json, and Content-Encoding: gzip only if the body is compressed.",
    "The Content-Type must be application/json.",
)
INVALID_REQUEST = Problem(
    "invalid-request",
    422,
    "Invalid request",
    "The body is valid JSON, but its members or the request's parameters are not valid. Nothing was stored or "
    "delivered.",
    "Each entry of errors points at a member or parameter and says what is wrong with it.",
    "`surprise` is not a known parameter or member.",
)
RATE_LIMITED = Problem(
    "rate-limited",
    429,
    "Rate limit exceeded",
    "The tenant exceeded its limit of requests per second. Nothing was stored or delivered.",
    "Wait for the seconds in Retry-After. The header RateLimit on every response shows how many requests are left.",
    str(errors.RateLimited(10, 1)),
)
TOO_MANY_FAILURES = Problem(
    "too-many-failures",
    429,
    "Too many requests without a valid API key",
    "This address sent too many requests without a valid API key. Until it stops, the service accepts only "
    "cached keys from this address.",
    "Stop the client that uses a missing, mistyped or revoked key, and wait for the seconds in Retry-After.",
    str(errors.TooManyFailures(1)),
)
INTERNAL_ERROR = Problem(
    "internal-error",
    500,
    "Internal error",
    "The request failed because of a bug in the service. The log has the details under the request ID.",
    "Try again, with an idempotency key if you send events. If it keeps failing, report the request ID.",
)
OVERLOADED = Problem(
    "overloaded",
    503,
    "Service overloaded",
    "The service is parsing as many request bodies as fit into its memory. Nothing was stored or changed.",
    "Try again after the seconds in Retry-After. Smaller batches need less memory.",
)
UNAVAILABLE = Problem(
    "unavailable",
    503,
    "Store unavailable",
    "The store is busy, unreachable, out of space, or has more to delete than fits into one request. The request may "
    "or may not have taken effect.",
    "Try again after the seconds in Retry-After, with an idempotency key if you send events.",
)

PROBLEMS = {problem.slug: problem for problem in list(globals().values()) if isinstance(problem, Problem)}
