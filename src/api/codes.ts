import { byProgram, documentPath, program } from '../base/program.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of the HTTP side itself. */
export const apiErrors = defineErrors({
  NoSession: {
    status: 400,
    meaning:
      'The request is about the session of its caller, but came over the local socket, which has no sessions.',
    action: `Send it to port ${program.port} with a token.`,
  },
  MethodNotAllowed: {
    status: 405,
    meaning: 'The path does not support this method; the Allow header lists the supported ones.',
    action: 'Use a listed method.',
  },
  RequestTimeout: {
    status: 408,
    meaning: 'The request arrived too slowly.',
    action: 'Send faster; api.body in the configuration sets the lowest rate.',
  },
  UriTooLong: {
    status: 414,
    meaning: 'A segment of the path is too long.',
    action: 'Shorten the segment.',
  },
  UnsupportedMediaType: {
    status: 415,
    meaning: 'The header Content-Type is missing, or the endpoint does not accept its type.',
    action:
      'Send the header Content-Type: application/json; for an upload multipart/form-data. The document of the API lists the types of each endpoint.',
  },
  RangeUnsatisfiable: {
    status: 416,
    meaning: 'The range has no byte of what is sent; the header Content-Range gives its size.',
    action: 'Ask for a range within it, or for the whole.',
  },
  TooManyRequests: {
    status: 429,
    meaning: `This client or user sends more requests than the ${program.noun} allows.`,
    action: `Wait for the seconds in Retry-After and send fewer requests; api.rateLimits in the configuration sets the limits${byProgram({ host: '', platform: `, and ${documentPath('platform.md')}, "Rates", says which there are` })}.`,
  },
  HeadersTooLarge: {
    status: 431,
    meaning: 'The header fields are larger than the server accepts.',
    action: 'Send smaller headers.',
  },
})

/** Refusals of hosts alone: no other platform manages the platform, and it sets no cookies. */
export const hostApiErrors = defineErrors({
  ManagedByPlatform: {
    status: 403,
    meaning: 'The host is connected to the platform, which manages its clusters.',
    action: 'Use the platform; GET /v1/edge-mgmt/settings says how the host is managed.',
  },
  Busy: {
    status: 409,
    meaning:
      'The host does something that the operation would break off or disturb: a step of the cluster, an upgrade, a renewal, an upload, a change of the network, a reset. details.reasons lists all of it.',
    action:
      'Wait until it is done; what is tried of the network is kept or taken back. A reboot, a shutdown and a reset go ahead with force=true.',
  },
  CrossOrigin: {
    status: 403,
    meaning: 'A cookie-authenticated change did not prove that it comes from the same origin.',
    action: 'Send the token in the Authorization header, or send Origin or Sec-Fetch-Site.',
  },
})
