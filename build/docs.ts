/**
 * Writes docs/openapi.json, docs/api.md, docs/errors.md, docs/metrics.md, docs/attention.md, docs/edgehostctl.md,
 * docs/definition-problems.md, docs/preflight-checks.md, docs/cluster-events.md, docs/definition.schema.json and
 * systemd/config.yaml from the routes, the declarations of the rooms, the tables of commands, rules, checks and events, and the
 * format of definitions.
 * With --check it writes nothing and fails when one of them is out of date.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { preflightCodes } from '../src/cluster/desired/preflight-codes.ts'
import {
  categories,
  conditionTypes,
  type ConditionType,
  type Reason,
} from '../src/cluster/events/condition-types.ts'
import { reasons } from '../src/cluster/events/reasons.ts'
import { formatDocument } from '../src/definition/format/format.ts'
import { definitionCodes } from '../src/definition/rules/codes.ts'
import { commandTable } from '../src/edgehostctl/nouns.ts'
import { attention, defaultConfigFile, errorTable, families } from '../src/edgehostd/declarations.ts'
import { createDeclaringServer, declareRooms } from './declaring-server.ts'
import { hostApi } from './host-api.ts'
import { manualMarkdown, ofHost } from './manual.ts'
import { collectDocument, collectedDocument, finishDocument, type Examples } from './openapi.ts'
import { apiPage, cell, errorPage, metricsPage, withoutAccepts, writeOutputs } from './pages.ts'

const root = join(import.meta.dirname, '..')
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

async function describeApi() {
  const app = createDeclaringServer()
  await collectDocument(app, hostApi(version))
  await declareRooms(app)
  const examples = JSON.parse(readFileSync(join(root, 'docs/examples.json'), 'utf8')) as Examples
  const declared = collectedDocument(app)
  return { declared, document: finishDocument(declared, examples, errorTable) }
}

function definitionProblemPage(): string {
  const lines = [
    '# Problems of a definition',
    '',
    '<!-- Made by `make docs` from the table of the rules; do not edit. -->',
    '',
    '`edgehostctl definition validate` reports these problems of the content of a definition, all at once, each with its place.',
    'A definition with an error cannot be used, one with warnings can. Refusals of whole archives, and problems of the form, are',
    'described in [definition-format.md](definition-format.md).',
    '',
    '| Code | | Meaning | What to do |',
    '|---|---|---|---|',
  ]
  for (const [code, { severity, meaning, action }] of Object.entries(definitionCodes).sort(([a], [b]) =>
    a.localeCompare(b),
  ))
    lines.push(`| \`${code}\` | ${severity} | ${cell(meaning)} | ${cell(action)} |`)
  return `${lines.join('\n')}\n`
}

function preflightPage(): string {
  const lines = [
    '# Pre-flight checks of a cluster',
    '',
    '<!-- Made by `make docs` from the table of the checks; do not edit. -->',
    '',
    '`POST /v1/edge-mgmt/cluster` makes all checks before it changes anything, and answers `PreflightFailed` with everything that was',
    'found. `?dryRun=true` only checks. An error keeps the cluster from being created, a warning does not; the severity here is that of',
    'most findings.',
    '',
    '| Code | | Meaning | What to do |',
    '|---|---|---|---|',
  ]
  for (const [code, { severity, meaning, action }] of Object.entries(preflightCodes).sort(([a], [b]) =>
    a.localeCompare(b),
  ))
    lines.push(`| \`${code}\` | ${severity} | ${cell(meaning)} | ${cell(action)} |`)
  return `${lines.join('\n')}\n`
}

function clusterEventPage(): string {
  const types = Object.entries<ConditionType>(conditionTypes)
  const lines = [
    '# Events of the cluster',
    '',
    '<!-- Made by `make docs` from the table of reasons; do not edit. -->',
    '',
    'What edgehostd reports about the cluster: as events (`GET /v1/edge-mgmt/cluster/events`, and `…/events/stream` as they come), and as',
    'conditions (`GET /v1/edge-mgmt/events/lifecycle`), one for each type. An event has a reason; the reason says the type of its condition,',
    'and what it makes of it. Reasons marked with a number are the milestones of every cluster, in this order (`expectedOrder`). Events with',
    'other reasons, of other components, are those of Kubernetes. `LogError` is the reason of all lines of the journal that',
    '`GET /v1/edge-mgmt/edgehosts/current/error-logs` gives.',
    '',
  ]
  let milestone = 0
  for (const [category, meaning] of Object.entries(categories)) {
    lines.push(
      `## ${category}`,
      '',
      meaning,
      '',
      '| | Reason | Condition | | Severity | Meaning |',
      '|---|---|---|---|---|---|',
    )
    for (const [name, reason] of Object.entries<Reason>(reasons)) {
      if (conditionTypes[reason.type].category !== category) continue
      const place = reason.isExpected ? String((milestone += 1)) : ''
      const { type, status = '', severity = 'Normal' } = reason
      lines.push(
        `| ${place} | \`${name}\` | \`${type}\` | ${status} | ${severity} | ${cell(reason.meaning)} |`,
      )
    }
    lines.push('')
  }
  lines.push('## Conditions', '', '| Type | Label | Of |', '|---|---|---|')
  for (const [type, { label, of }] of types) lines.push(`| \`${type}\` | ${label} | ${of} |`)
  return `${lines.join('\n')}\n`
}

function attentionPage(): string {
  const lines = [
    '# Attention',
    '',
    '<!-- Made by `make docs` from the declarations of the rooms; do not edit. -->',
    '',
    'What an operator has to know or to do about a host: `GET /v1/edge-mgmt/edgehosts/current/attention`, and the end of',
    '`edgehostctl status`. An item is gone when its cause is. It has a message, mostly a next command, and the object that it is about.',
    '',
    '| Code | Meaning |',
    '|---|---|',
  ]
  for (const [code, meaning] of Object.entries(attention).sort(([a], [b]) => a.localeCompare(b)))
    lines.push(`| \`${code}\` | ${cell(meaning)} |`)
  return `${lines.join('\n')}\n`
}

const { declared, document } = await describeApi()
writeOutputs({
  'docs/openapi.json': `${JSON.stringify(document, withoutAccepts, 2)}\n`,
  'docs/api.md': apiPage(declared, {
    title: 'Service API',
    introduction: [
      '`https://<host>:5080`. Bodies are JSON. Send the token of a login in the header `Authorization`. Every error',
      'has the body of [errors.md](errors.md). Programs can read the same in `GET /openapi.json`.',
      'A read of JSON has an `ETag`: with it in `If-None-Match` the next one is 304, without a body, while nothing has changed.',
      'A query parameter that is misspelt, as `filter` for `filters`, is refused, and any unknown one of a change that offers `dryRun` or another parameter; other unknown ones are ignored. A field of a body is refused too where it is nearly one of its fields, as `isSensitiv`, and no field of the API has its name.',
    ],
    errorPage: 'errors.md',
  }),
  'docs/errors.md': errorPage(errorTable),
  'docs/metrics.md': metricsPage(families),
  'docs/attention.md': attentionPage(),
  'docs/edgehostctl.md': manualMarkdown({ table: commandTable, ...ofHost }),
  'systemd/config.yaml': defaultConfigFile(),
  'docs/definition-problems.md': definitionProblemPage(),
  'docs/cluster-events.md': clusterEventPage(),
  'docs/preflight-checks.md': preflightPage(),
  'docs/definition.schema.json': `${JSON.stringify(formatDocument, withoutAccepts, 2)}\n`,
})
