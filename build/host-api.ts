import { tags } from '../src/edgehostd/declarations.ts'
import type { DescribedApi } from './openapi.ts'

/** The service API of a host, for its document. */
export const hostApi = (version: string): DescribedApi => ({
  version,
  title: 'edgehostd service API',
  description:
    'The API of an edge host. Every refusal and failure has the body Error; every reply carries X-Request-Id. ' +
    'A request that is not valid HTTP is answered with 400, 408 or 431 at every path.',
  servers: [
    {
      url: 'https://{host}:5080',
      description: 'An edge host',
      variables: { host: { default: 'localhost', description: 'Name or address of the edge host.' } },
    },
  ],
  tags,
  securitySchemes: {
    token: {
      type: 'apiKey',
      in: 'header',
      name: 'Authorization',
      description: 'The access token of a login, with or without `Bearer` before it.',
    },
    cookie: {
      type: 'apiKey',
      in: 'cookie',
      name: 'Authorization',
      description: 'The same token as a cookie; a change must then come from the same origin.',
    },
  },
})
