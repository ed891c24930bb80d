/**
 * Every error code a client can meet: its HTTP status, what it means, and what the operator can do.
 * `docs/errors.md` is generated from this table; codes are stable, texts may improve.
 */
export const errorCodes = {
  BadRequest: {
    status: 400,
    meaning: 'The request does not follow the schema of the endpoint; the message names the field.',
    action: 'Correct the named field.',
  },
  NoSession: {
    status: 400,
    meaning:
      'The request is about the session it belongs to, and came over the local socket, where there is none.',
    action: 'Leave it; or send it to port 5080 with a token.',
  },
  SignatureMissing: {
    status: 400,
    meaning: 'The host has a public key for uploads, and this upload came without a signature.',
    action:
      'Sign the file with openssl dgst -sha256 -sign KEY -out FILE.sig FILE and send FILE.sig as the part signature.',
  },
  SignatureInvalid: {
    status: 400,
    meaning: "The signature does not fit the uploaded file and the host's public key; nothing was kept.",
    action:
      'Sign the very file that is sent, SHA-256, with the private key of GET /v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key.',
  },
  InvalidCredentials: {
    status: 401,
    meaning:
      'The user name and password do not let anyone in. Wrong password, unknown, locked and expired accounts get this same answer.',
    action: 'Try again; the reason is in the journal of the host.',
  },
  PasswordExpired: {
    status: 401,
    meaning: 'The password was right but has expired.',
    action: 'POST /v1/users/default/password/reset with username, oldPassword and newPassword.',
  },
  Unauthenticated: {
    status: 401,
    meaning: 'The token is missing, altered, expired or revoked.',
    action: 'Log in again or renew the token.',
  },
  Forbidden: {
    status: 403,
    meaning: 'The role of this user does not allow the operation.',
    action: 'Ask a member of an administrators group of the host.',
  },
  ManagedByPlatform: {
    status: 403,
    meaning: 'The host is connected to the platform, which manages its clusters.',
    action: 'Do it on the platform; GET /v1/edge-mgmt/settings says how the host is managed.',
  },
  CrossOrigin: {
    status: 403,
    meaning: 'A cookie-authenticated change did not prove that it comes from the same origin.',
    action: 'Send the token in the Authorization header, or send Origin or Sec-Fetch-Site.',
  },
  NotFound: {
    status: 404,
    meaning: 'There is nothing at this path or under this id.',
    action: 'See docs/api.md or GET /openapi.json.',
  },
  MethodNotAllowed: {
    status: 405,
    meaning: 'The path exists, the method does not; the Allow header lists those that do.',
    action: 'Use a listed method.',
  },
  RequestTimeout: {
    status: 408,
    meaning: 'The request arrived too slowly.',
    action: 'Send faster; api.body in the configuration says how fast.',
  },
  PayloadTooLarge: {
    status: 413,
    meaning: 'The body is larger than the endpoint accepts.',
    action: 'Send less.',
  },
  UriTooLong: {
    status: 414,
    meaning: 'A part of the path is longer than any name could be.',
    action: 'Shorten it.',
  },
  UnsupportedMediaType: {
    status: 415,
    meaning: 'The content type is not one the endpoint reads.',
    action: 'Send Content-Type: application/json; for an upload multipart/form-data.',
  },
  TooManyAttempts: {
    status: 429,
    meaning: 'Too many failed logins for this user or from this address.',
    action: 'Wait for the seconds in Retry-After.',
  },
  TooManyLogins: {
    status: 429,
    meaning: 'More logins are being checked than the host has room for.',
    action: 'Wait for the seconds in Retry-After.',
  },
  TooManyRequests: {
    status: 429,
    meaning: 'This address asks more often than the host allows.',
    action:
      'Wait for the seconds in Retry-After and ask less often; api.rateLimits in the configuration says how often.',
  },
  HeadersTooLarge: {
    status: 431,
    meaning: 'The header fields are larger than the server accepts.',
    action: 'Send smaller headers.',
  },
  ArchiveInvalid: {
    status: 400,
    meaning:
      'The archive holds what a definition may not hold; details.member names it, details.reason says what is wrong.',
    action: 'Build it with edgehostctl definition build; docs/definition-format.md says what is allowed.',
  },
  ArchiveDamaged: {
    status: 400,
    meaning: 'The archive is not what was packed: cut off, altered, or no archive at all.',
    action: 'Copy it again; edgehostctl definition validate FILE checks it on any machine.',
  },
  ArchiveTooLarge: {
    status: 400,
    meaning:
      'The archive unpacks to more than the host accepts from a definition; details.member names what.',
    action: 'Take out what is not needed, or build it in parts.',
  },
  DefinitionInvalid: {
    status: 400,
    meaning:
      'The archive is whole, its content cannot be deployed; details.problems lists what is wrong, each with a code and a place.',
    action: 'Correct what is listed; docs/definition-problems.md says how. Build and upload it again.',
  },
  PasswordRefused: {
    status: 400,
    meaning: "The host's password policy refused the new password; the message holds PAM's own words.",
    action: 'Choose another password.',
  },
  OldPasswordWrong: {
    status: 400,
    meaning: 'The old password is not the current one.',
    action: 'Correct oldPassword.',
  },
  PamUnavailable: {
    status: 500,
    meaning: "The host's PAM stack could not give an answer.",
    action: 'See journalctl -u edgehostd and docs/operations.md, "When nobody can log in".',
  },
  NotReady: {
    status: 503,
    meaning:
      'The daemon is starting, stopping, or cannot do its work now. healthz and readyz say this, and uploads that a stop ends.',
    action: 'Wait; the journal says what is missing. See docs/operations.md, "Is it well".',
  },
  TooManyQueries: {
    status: 503,
    meaning: 'More list queries that have to look at many rows are waiting than the host has room for.',
    action: 'Wait for the seconds in Retry-After; ask without filters and orderBy, or one after the other.',
  },
  QueryTooLong: {
    status: 503,
    meaning: 'A list query had to look at so many rows that it was given up.',
    action: 'Narrow the filter, for audits by startTime and endTime, or page in the default order.',
  },
  TooManyUploads: {
    status: 503,
    meaning: 'As many uploads are arriving as the host takes at one time.',
    action: 'Wait for the seconds in Retry-After, or end another upload.',
  },
  PasswordChangeUnavailable: {
    status: 503,
    meaning: 'The transient unit that changes passwords could not be started.',
    action: 'See journalctl -u edgehostd -p warning, or use passwd on the console.',
  },
  InsufficientStorage: {
    status: 507,
    meaning:
      'Nothing was changed: the disk is full or cannot be written, so that the change could not be recorded. Logins and reads go on.',
    action: 'Make room in the state folder (df), or see journalctl -u edgehostd -p err.',
  },
  StorageFull: {
    status: 507,
    meaning: 'There is no room on the disk for what is being uploaded; nothing of it was kept.',
    action: 'Make room (df says where), or send less.',
  },
  Internal: {
    status: 500,
    meaning: 'The daemon failed; the reference leads to the line of the journal.',
    action: 'journalctl -u edgehostd | grep the ref.',
  },
} as const satisfies Record<string, { status: number; meaning: string; action: string }>

/** A stable `UpperCamelCase` name from the table. */
export type ErrorCode = keyof typeof errorCodes
