import { defineErrors } from '../errors/define-errors.ts'

/** What the HTTP side refuses by itself. */
export const apiErrors = defineErrors({
  NoSession: {
    status: 400,
    meaning:
      'The request is about the session it belongs to, and came over the local socket, which has no sessions.',
    action: 'Leave it; or send it to port 5080 with a token.',
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
})
