import { Ajv, type ErrorObject, type Options, type SchemaValidateFunction, type ValidateFunction } from 'ajv'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { refusalOf, type Refusal } from '../base/field-stance.ts'
import { printable } from '../base/printable.ts'

/**
 * Compiles request schemas. Bodies are validated as they are: no coercion, no removal, no defaults, because Fastify's
 * own settings would accept 5 or ["a"] for a string. Paths and queries are text on the wire; `textParser` parses it.
 *
 * A schema is compiled by the first request that needs it: compiling all of them takes longer than the rest of the
 * start. Our own schemas are not validated against the meta-schema for the same reason; a test does that.
 *
 * @param isEntered whether bodies come from a client: fields that are declared as refused are refused then. A body that was accepted before
 *   a field was refused stays accepted.
 */
export function createValidatorCompiler({ isEntered = true } = {}): FastifySchemaCompiler<TSchema> {
  const { bodies, texts } = isEntered ? entered : accepted
  return ({ schema, httpPart }) => {
    const isText = httpPart !== 'body'
    const compiled = once(() => (isText ? texts() : bodies()).compile(schema))
    const parseTexts = isText ? textParser(schema) : undefined
    const validate = (data: unknown): boolean => {
      const check = compiled()
      parseTexts?.(data as Record<string, unknown>)
      const isValid = check(data)
      // Fastify reads the errors from a property of the function.
      ;(validate as Partial<ValidateFunction>).errors = check.errors ?? null
      return isValid
    }
    return validate
  }
}

const options: Options = {
  strict: false,
  allErrors: false,
  removeAdditional: false,
  validateSchema: false,
  // Adds the schema that failed to the error: its keyword `accepts` describes its pattern.
  verbose: true,
  meta: false,
  // Known, but not checked: clients send back the times that a reply gave them, and the host sets its own. Ajv writes a line for
  // each format that it does not know.
  formats: { 'date-time': true },
}

/** One of each for the process: Ajv keeps what it has compiled, so that several apps compile a schema once. */
const compilersOf = (isEntered: boolean) => {
  const compiler = (useDefaults: boolean) => {
    const ajv = new Ajv({ ...options, coerceTypes: false, useDefaults })
    return isEntered ? ajv.addKeyword({ keyword: 'x-refused', errors: true, validate: requireAccepted }) : ajv
  }
  return { bodies: once(() => compiler(false)), texts: once(() => compiler(true)) }
}

const booleans: Readonly<Record<string, boolean>> = { true: true, false: false }

/** The keyword `x-refused` of a field, see `base/field-stance.ts`: its value asks for something that is not done. */
const requireAccepted: SchemaValidateFunction = (
  refusal: Refusal,
  value: unknown,
  _schema?: unknown,
  { instancePath = '' }: { readonly instancePath?: string } = {},
) => {
  const found = refusalOf(refusal, value)
  if (!found) return true
  const below = found.path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`)
  requireAccepted.errors = [
    { keyword: 'x-refused', instancePath: instancePath + below.join(''), message: found.message, params: {} },
  ]
  return false
}

const entered = compilersOf(true)
const accepted = compilersOf(false)

/**
 * Checks documents that no client has entered as they are: a body that was accepted once, or the result of a change.
 * @param part name of the whole document in messages
 * @returns the problem and its field; undefined without one
 */
export function createDocumentCheck(schema: TSchema, part: string) {
  const validate = createValidatorCompiler({ isEntered: false })({
    schema,
    method: '',
    url: '',
    httpPart: 'body',
  }) as ((document: unknown) => boolean) & Partial<ValidateFunction>
  return (document: unknown): ReturnType<typeof describeProblem> | undefined => {
    if (validate(document)) return undefined
    const [problem] = validate.errors ?? []
    return problem ? describeProblem(problem, part) : { field: '', message: `${part} is not valid` }
  }
}

/** Checks bodies that were accepted by another program before, by the same rules. @returns the problem; undefined without one */
export function createBodyCheck(schema: TSchema): (body: unknown) => string | undefined {
  const problemOf = createDocumentCheck(schema, 'body')
  return (body) => problemOf(body)?.message
}

/**
 * Parses the integers and booleans among the texts of a query or a path, in place; empty means not set, but where no other name is
 * allowed it is refused, as such a name is: it may be what keeps a request from changing something. A number that is spelled in another
 * way, `0x10` or `1e1`, stays text, and the schema refuses it.
 */
function textParser({
  properties = {},
  additionalProperties,
}: {
  properties?: Record<string, TSchema>
  additionalProperties?: unknown
}) {
  const entries = Object.entries(properties) as [string, { type?: string }][]
  const typed = entries.filter(([, { type }]) => type === 'integer' || type === 'boolean')
  return (data: Record<string, unknown>): void => {
    for (const [name, { type }] of typed) {
      const text = data[name]
      if (typeof text !== 'string') continue
      if (text === '' && additionalProperties !== false) Reflect.deleteProperty(data, name)
      else if (type === 'boolean') data[name] = Object.hasOwn(booleans, text) ? booleans[text] : text
      else if (/^-?\d+$/.test(text)) data[name] = Number(text)
    }
  }
}

/**
 * Compiles reply schemas, each for the first reply that needs it. A serialiser writes only the fields that its schema names, so
 * no other field can leak.
 */
export function createSerializerCompiler(): FastifySerializerCompiler<TSchema> {
  return ({ schema }) => {
    const compiled = once(() => serializerOf(schema))
    return (value) => compiled()(value)
  }
}

const serializers = new WeakMap<TSchema, (value: unknown) => string>()

/** One for the process, as the validators are. */
function serializerOf(schema: TSchema): (value: unknown) => string {
  const known = serializers.get(schema)
  if (known) return known
  const made = fastJsonStringify(schema as fastJsonStringify.Schema)
  serializers.set(schema, made)
  return made
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}

/** The message of a validation problem, which names the field, for example `password must be string`. */
export function describeProblem(
  problem: Pick<ErrorObject, 'keyword' | 'instancePath' | 'params' | 'message' | 'parentSchema'>,
  part: string,
) {
  const path = fieldPath(problem.instancePath)
  if (problem.keyword === 'additionalProperties') {
    const unknown = printable(String(problem.params.additionalProperty))
    const allowed = Object.keys((problem.parentSchema?.properties ?? {}) as object)
    const field = [path, unknown].filter(Boolean).join('.')
    return { field, message: `${field} is not known; ${inOrder(allowed)}` }
  }
  const missing = problem.keyword === 'required' ? String(problem.params.missingProperty) : undefined
  const field = [path, missing].filter(Boolean).join('.') || part
  const isEmpty = problem.keyword === 'minLength' && problem.params.limit === 1
  const text = missing ? 'is missing' : isEmpty ? 'is empty' : (inWords(problem) ?? 'is not valid')
  return { field, message: `${field} ${text}` }
}

/** A JSON pointer (RFC 6901) as fields are named in messages: `/spec/pools/0/name` is `spec.pools[0].name`. */
export const fieldPath = (pointer: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map((part) =>
      /^\d+$/.test(part) ? `[${part}]` : `.${part.replaceAll('~1', '/').replaceAll('~0', '~')}`,
    )
    .join('')
    .replace(/^\./, '')

function inOrder(allowed: readonly string[]): string {
  if (allowed.length === 0) return 'nothing may be given here'
  return allowed.length === 1 ? `only ${allowed[0]} may be given` : `allowed are: ${allowed.join(', ')}`
}

/** The expectation of a schema. The keyword `accepts` describes a pattern, since a regular expression is hard to read. */
function inWords({ keyword, params, parentSchema, message }: Parameters<typeof describeProblem>[0]) {
  if (keyword === 'pattern') return `must be ${String(parentSchema?.accepts ?? 'of another form')}`
  if (keyword !== 'enum') return message
  const allowed = (params.allowedValues as unknown[]).filter((value) => value !== '')
  return `must be one of: ${allowed.join(', ')}`
}
