/** Pages of the documents that both programs have. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { program } from '../src/base/program.ts'
import type { ErrorTable } from '../src/errors/define-errors.ts'
import type { Family } from '../src/root/room.ts'
import type { ApiDocument, Operation, Schema, Stage } from './openapi.ts'

const root = join(import.meta.dirname, '..')

/** What the pages of one program say above their tables. */
export interface PageTexts {
  readonly title: string
  /** Where the API is, and how a client logs in. */
  readonly introduction: readonly string[]
  /** File name of the page of errors, beside the page of the API. */
  readonly errorPage: string
}

/** The page of an API: operations, parameters, bodies, replies. */
export function apiPage({ paths }: ApiDocument, { title, introduction, errorPage }: PageTexts): string {
  const lines = [`# ${title}`, '', '<!-- Made by `make docs` from the routes; do not edit. -->', '']
  lines.push(...introduction, '')
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
    if (operation['x-airgap-only'])
      lines.push(
        '',
        'Only on hosts in airgap mode: on a connected host the platform does this, and the reply is 403 `ManagedByPlatform`.',
      )
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
    lines.push(`| ${errors.join(', ')} | [error](${errorPage}) |`)
  }
  return `${lines.join('\n')}\n`
}

const who = (operation: Operation) =>
  ({ open: 'anyone', viewer: 'logged in', admin: 'administrators' })[operation['x-access']] ??
  operation['x-access']

const describeLife = ({ phase, date, successor }: Stage) =>
  `**${phase === 'sunset' ? 'Works until' : 'Deprecated since'} ${date}.**${successor === undefined ? '' : ` Use \`${successor}\`.`}`

/** Text for a cell of a table. */
export const cell = (text: string) => text.replaceAll('|', '\\|')

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

/** The page of all errors of a program. */
export function errorPage(errorTable: ErrorTable): string {
  const lines = ['# Errors', '', '<!-- Made by `make docs` from the error table; do not edit. -->', '']
  lines.push(
    'Every refusal and failure has one body: `{ "code", "message", "details"?, "ref"? }`. `code` is stable, `message` is for',
  )
  lines.push(
    'people, `details.field` names the field that is wrong, and `ref` is also in the line of the journal:',
  )
  lines.push(
    `\`journalctl -u ${program.daemon} | grep <ref>\`. A refused read has a line at \`log.level: debug\` only.`,
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

/** The page of all metrics of a program. */
export function metricsPage(families: Readonly<Record<string, Family>>): string {
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
export const withoutAccepts = (key: string, value: unknown): unknown =>
  key === 'accepts' && typeof value === 'string' ? undefined : value

/** Writes the outputs, by their paths in the checkout; with --check it only compares, and the process fails when one is out of date. */
export function writeOutputs(outputs: Readonly<Record<string, string>>): void {
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
}
