/**
 * Writes docs/openapi.json, docs/api.md, docs/errors.md, docs/metrics.md, docs/edgehostctl.md,
 * docs/definition-problems.md, docs/preflight-checks.md, docs/cluster-events.md, docs/definition.schema.json and
 * systemd/config.yaml from the routes, the declarations of the rooms, the tables of commands, rules, checks and events, and the
 * format of definitions.
 * With --check it writes nothing and fails when one of them is out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { preflightCodes } from '../src/cluster/preflight/codes.ts'
import { categories, conditionTypes, type ConditionType } from '../src/cluster/events/condition-types.ts'
import type { Reason } from '../src/cluster/events/reason.ts'
import { reasons } from '../src/cluster/events/reasons.ts'
import { formatDocument } from '../src/definition/format/format.ts'
import { definitionCodes } from '../src/definition/rules/codes.ts'
import { defaultConfigFile } from '../src/configuration.ts'
import { errorTable, families } from '../src/declarations.ts'
import { createDeclaringServer, declareRooms } from './declaring-server.ts'
import { manualMarkdown } from './manual.ts'
import {
  collectDocument,
  finishDocument,
  type ApiDocument,
  type Examples,
  type Operation,
  type Schema,
  type Stage,
} from './openapi.ts'

const root = join(import.meta.dirname, '..')
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

async function describeApi() {
  const app = createDeclaringServer()
  await collectDocument(app, version)
  await declareRooms(app)
  const examples = JSON.parse(readFileSync(join(root, 'docs/examples.json'), 'utf8')) as Examples
  const declared = app.swagger() as unknown as ApiDocument
  return { declared, document: finishDocument(declared, examples) }
}

function apiPage({ paths }: ApiDocument): string {
  const lines = ['# Service API', '', '<!-- Made by `make docs` from the routes; do not edit. -->', '']
  lines.push(
    '`https://<host>:5080`. Bodies are JSON. Send the token of a login in the header `Authorization`. Every error',
  )
  lines.push('has the body of [errors.md](errors.md). Programs can read the same in `GET /openapi.json`.', '')
  lines.push('| Method | Path | Who | What |', '|---|---|---|---|')
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  for (const { path, method, operation } of operations) {
    lines.push(
      `| ${method} | [\`${path}\`](#${operation.operationId.toLowerCase()}) | ${who(operation)} | ${operation.summary} |`,
    )
  }
  for (const { path, method, operation } of operations) {
    lines.push(
      '',
      `## ${operation.operationId}`,
      '',
      `\`${method} ${path}\`: ${operation.summary}. Who: ${who(operation)}.`,
    )
    const fields = [
      ...(operation.parameters ?? []).map((each) =>
        fieldRow(each.name, each.in, each.required === true, {
          ...each.schema,
          description: each.description ?? each.schema.description ?? '',
        }),
      ),
      ...rows(operation.requestBody, 'body'),
    ]
    if (operation.description) lines.push('', operation.description)
    const life = operation['x-lifecycle']
    if (life) lines.push('', describeLife(life))
    if (fields.length > 0)
      lines.push('', '| Field | In | Type | Required | Meaning |', '|---|---|---|---|---|', ...fields)
    lines.push('', '| Status | Reply |', '|---|---|')
    const replies = Object.entries(operation.responses)
    for (const [status, reply] of replies.filter(([status]) => Number(status) < 400)) {
      lines.push(`| ${status} | ${describeReply(reply)} |`)
    }
    const errors = replies.map(([status]) => status).filter((status) => Number(status) >= 400)
    lines.push(`| ${errors.join(', ')} | [error](errors.md) |`)
  }
  return `${lines.join('\n')}\n`
}

const who = (operation: Operation) =>
  ({ open: 'anyone', viewer: 'logged in', admin: 'administrators' })[operation['x-access']] ??
  operation['x-access']

const describeLife = ({ phase, date, successor }: Stage) =>
  `**${phase === 'sunset' ? 'Works until' : 'Deprecated since'} ${date}.**${successor === undefined ? '' : ` Use \`${successor}\`.`}`

const cell = (text: string) => text.replaceAll('|', '\\|')

function rows(part: { content?: Record<string, { schema: Schema }> } | undefined, place: string): string[] {
  const schema = Object.values(part?.content ?? {})[0]?.schema
  const object = schema?.anyOf?.find(({ properties }) => properties) ?? schema
  return Object.entries(object?.properties ?? {}).map(([name, field]) =>
    fieldRow(name, place, object?.required?.includes(name) === true, field),
  )
}

function fieldRow(name: string, place: string, required: boolean, schema: Schema): string {
  const fallback = schema.default === undefined ? '' : ` Default: \`${JSON.stringify(schema.default)}\`.`
  return `| \`${name}\` | ${place} | ${typeOf(schema)} | ${required ? 'yes' : ''} | ${cell(schema.description ?? '')}${fallback} |`
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ')
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ')
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {})}`
  if (schema.properties) {
    const inner = Object.entries(schema.properties).map(([name, field]) => `\`${name}\`: ${typeOf(field)}`)
    return inner.length > 0 ? `{ ${inner.join(', ')} }` : 'object'
  }
  return [schema.type ?? 'any'].flat().join(' or ')
}

const describeReply = (reply: Operation['responses'][string]) => {
  const schema = Object.values(reply.content ?? {})[0]?.schema
  return schema && schema.type !== 'null' ? typeOf(schema) : 'no content'
}

function errorPage(): string {
  const lines = ['# Errors', '', '<!-- Made by `make docs` from the error table; do not edit. -->', '']
  lines.push(
    'Every refusal and failure has one body: `{ "code", "message", "details"?, "ref"? }`. `code` is stable, `message` is for',
  )
  lines.push(
    'people, `details.field` names the field that is wrong, and `ref` is also in the line of the journal:',
  )
  lines.push(
    '`journalctl -u edgehostd | grep <ref>`. A refused read has a line at `log.level: debug` only.',
    '',
  )
  lines.push('| Code | HTTP | Meaning | What to do |', '|---|---|---|---|')
  for (const [code, { status, meaning, action }] of Object.entries(errorTable).sort(([a], [b]) =>
    a.localeCompare(b),
  )) {
    lines.push(`| \`${code}\` | ${status} | ${cell(meaning)} | ${cell(action)} |`)
  }
  return `${lines.join('\n')}\n`
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
    'other reasons, of other components, are those of Kubernetes.',
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

function metricsPage(): string {
  const lines = ['# Metrics', '', '<!-- Made by `make docs` from the table of metrics; do not edit. -->', '']
  lines.push(
    '`GET /metrics` for Prometheus, as text format 0.0.4 or OpenMetrics 1.0.0. Who may read it, how to scrape it, rules and a',
    'dashboard: [monitoring](monitoring/README.md). A value that is not known yet is left out.',
    '',
  )
  lines.push('| Metric | Type | Labels | Meaning |', '|---|---|---|---|')
  for (const [name, { type, labels = [], help }] of Object.entries(families)) {
    lines.push(
      `| \`${name}\` | ${type} | ${labels.map((each) => `\`${each}\``).join(', ')} | ${cell(help)} |`,
    )
  }
  return `${lines.join('\n')}\n`
}

/** Our keyword `accepts` is only for our messages: other validators may refuse a keyword that they do not know. */
const withoutAccepts = (key: string, value: unknown): unknown =>
  key === 'accepts' && typeof value === 'string' ? undefined : value

const { declared, document } = await describeApi()
const outputs = {
  'docs/openapi.json': `${JSON.stringify(document, withoutAccepts, 2)}\n`,
  'docs/api.md': apiPage(declared),
  'docs/errors.md': errorPage(),
  'docs/metrics.md': metricsPage(),
  'docs/edgehostctl.md': manualMarkdown(),
  'systemd/config.yaml': defaultConfigFile(),
  'docs/definition-problems.md': definitionProblemPage(),
  'docs/cluster-events.md': clusterEventPage(),
  'docs/preflight-checks.md': preflightPage(),
  'docs/definition.schema.json': `${JSON.stringify(formatDocument, withoutAccepts, 2)}\n`,
}

let stale = 0
for (const [name, text] of Object.entries(outputs)) {
  const file = join(root, name)
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text)
  } else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${name} is out of date; run: make docs`)
    stale += 1
  }
}
process.exitCode = stale > 0 ? 1 : 0
