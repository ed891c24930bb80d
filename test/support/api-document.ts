import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type AnySchema, type ValidateFunction } from 'ajv/dist/2020.js'
import type { ApiDocument, Operation, Reply } from '../../build/openapi.ts'

export interface DocumentedOperation extends Operation {
  readonly method: string
  readonly path: string
}

export interface ObservedReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  readonly body: string
}

/** docs/openapi.json as a test needs it. */
export interface ReadDocument {
  readonly document: ApiDocument
  readonly operations: readonly DocumentedOperation[]
  /** Differences between a reply and the document; empty when there are none. */
  problemsOf(operation: DocumentedOperation, reply: ObservedReply): string[]
}

export function readDocument(text = readFileSync(join(root, 'docs/openapi.json'), 'utf8')): ReadDocument {
  const document = JSON.parse(text) as ApiDocument
  // Replies are ours: a field that the document does not name is a mistake in the reply or in the document.
  const { components } = JSON.parse(text, closeObject) as ApiDocument
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': dateTime } })
  ajv.addSchema({ $id: 'api', components })
  const compiled = new Map<string, ValidateFunction>()

  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )

  const validatorOf = (schema: object): ValidateFunction => {
    const known = JSON.stringify(schema)
    const found = compiled.get(known)
    if (found) return found
    const closed = JSON.parse(
      known.replaceAll('"#/components/', '"api#/components/'),
      closeObject,
    ) as AnySchema
    const made = ajv.compile(closed)
    compiled.set(known, made)
    return made
  }

  const promised = (reply: Reply): Reply =>
    reply.$ref === undefined
      ? reply
      : (document.components.responses?.[reply.$ref.split('/').at(-1) ?? ''] as Reply)

  const isRequired = (field: Field): boolean =>
    field.$ref === undefined
      ? field.required === true
      : isRequired(document.components.headers?.[field.$ref.split('/').at(-1) ?? ''] as Field)

  return {
    document,
    operations,
    problemsOf(operation, { status, headers, body }) {
      const declared = operation.responses[String(status)]
      if (!declared) return [`${status} is not documented: ${body.slice(0, 200)}`]
      const { content = {}, headers: fields = {} } = promised(declared)
      const problems = Object.entries(fields)
        .filter(([name, field]) => isRequired(field as Field) && headers[name.toLowerCase()] === undefined)
        .map(([name]) => `${status} lacks the header ${name}`)
      const documented = new Set(Object.keys(fields).map((name) => name.toLowerCase()))
      problems.push(
        ...toDocument
          .filter((name) => headers[name] !== undefined && !documented.has(name))
          .map((name) => `${status} has the header ${name}, which is not documented`),
      )
      const type = String(headers['content-type']).split(';')[0] ?? ''
      const types = Object.keys(content)
      if (types.length === 0) return body === '' ? problems : [...problems, `${status} has a body`]
      if (!types.includes(type)) return [...problems, `${status} is ${type}, not ${types.join()}`]
      if (type !== 'application/json') return problems
      const validate = validatorOf(content[type]?.schema ?? {})
      if (!validate(JSON.parse(body)))
        problems.push(
          ...(validate.errors ?? []).map(
            (each) => `${status} ${each.instancePath} ${each.message} ${JSON.stringify(each.params)}`,
          ),
        )
      return problems
    },
  }
}

// Headers for clients.
const toDocument = [
  'audituid',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'deprecation',
  'sunset',
  'link',
]

interface Field {
  $ref?: string
  required?: boolean
}

const root = join(import.meta.dirname, '../..')
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

function closeObject(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('properties' in value)) return value
  if ('additionalProperties' in value || !('type' in value)) return value
  return { ...value, additionalProperties: false }
}
