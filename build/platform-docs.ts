/**
 * Writes the documents of the platform: docs/platform-openapi.json, docs/platform-api.md, docs/platform-errors.md,
 * docs/platform-metrics.md, docs/edgeplatformctl.md and systemd/platform-config.yaml. A process of its own, since the names of the program are a constant of it.
 * With --check it writes nothing and fails when one of them is out of date.
 */
import './as-platform.ts'
import { createRequire } from 'node:module'
import { Type } from 'typebox'
import { configuration, errorTable, families, tags } from '../src/edgeplatformd/declarations.ts'
import { commandTable } from '../src/edgeplatformctl/nouns.ts'
import { createDeclaringServer, declarePlatform } from './declaring-server.ts'
import { manualMarkdown, ofPlatform } from './manual.ts'
import { collectDocument, collectedDocument, finishDocument } from './openapi.ts'
import { apiPage, errorPage, metricsPage, withoutAccepts, writeOutputs } from './pages.ts'

const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

const app = createDeclaringServer()
await collectDocument(app, {
  version,
  title: 'edgeplatformd platform API',
  description:
    'The API of the platform that edge hosts connect to. Every refusal and failure has the body Error; every reply carries X-Request-Id. ' +
    'A request that is not valid HTTP is answered with 400, 408 or 431 at every path.',
  servers: [
    {
      url: 'https://{platform}',
      description: 'The platform',
      variables: { platform: { default: 'localhost', description: 'Name of the platform.' } },
    },
  ],
  tags,
  securitySchemes: {
    token: {
      type: 'apiKey',
      in: 'header',
      name: 'Authorization',
      description: 'The token of a login, with or without `Bearer` before it.',
    },
    apiKey: { type: 'apiKey', in: 'header', name: 'apiKey', description: 'An API key of a user.' },
  },
  scoped: {
    headers: Type.Object({
      ProjectUid: Type.Optional(
        Type.String({
          description:
            'Uid of the project in which the request is made; without it, the tenant. Also as a parameter of the query.',
        }),
      ),
    }),
    query: Type.Object({
      ProjectUid: Type.Optional(Type.String({ description: 'The project; also as a header.' })),
    }),
    statuses: [400, 403, 404],
  },
})
await declarePlatform(app)
const declared = collectedDocument(app)
const document = finishDocument(declared, { operations: {}, errors: {} }, errorTable)

writeOutputs({
  'docs/platform-openapi.json': `${JSON.stringify(document, withoutAccepts, 2)}\n`,
  'docs/platform-api.md': apiPage(declared, {
    title: 'Platform API',
    introduction: [
      '`https://<platform>`. Bodies are JSON. Send the token of a login in the header `Authorization`, or an API key in the header',
      '`apiKey`. Every error has the body of [platform-errors.md](platform-errors.md). Programs can read the same in `GET /openapi.json`.',
      'A read of JSON has an `ETag`: with it in `If-None-Match` the next one is 304, without a body, while nothing has changed.',
      'A query parameter that is misspelt, as `filter` for `filters`, is refused, and any unknown one of a change that offers `dryRun` or another parameter; other unknown ones are ignored. A field of a body is refused too where it is nearly one of its fields, as `isSensitiv`, and no field of the API has its name.',
    ],
    errorPage: 'platform-errors.md',
  }),
  'docs/platform-errors.md': errorPage(errorTable),
  'docs/edgeplatformctl.md': manualMarkdown({ table: commandTable, ...ofPlatform }),
  'docs/platform-metrics.md': metricsPage(families),
  'systemd/platform-config.yaml': configuration.defaultConfigFile(),
})
