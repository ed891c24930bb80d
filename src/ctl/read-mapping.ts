import { isUtf8 } from 'node:buffer'
import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'
import { readBody } from './read-body.ts'

/**
 * Reads a file of the user, YAML or JSON; - is standard input.
 * @param what the file has to be, for messages: `the body of POST /v1/things`
 * @throws Failure usage naming the file and the place where it is neither YAML nor JSON, without anything of its content
 */
export async function readMapping(file: string, what: string): Promise<object> {
  const refuse = (why: string, cause?: unknown) =>
    new Failure('usage', `FILE: ${printable(file)} ${why}`, { cause })
  const bytes = readBody(file, 'FILE')
  if (!isUtf8(bytes) || bytes.includes(0))
    throw refuse('is not text in UTF-8, so it is neither YAML nor JSON')
  const { parse, YAMLParseError } = await import('yaml')
  let parsed: unknown
  try {
    // JSON is YAML too.
    parsed = parse(bytes.toString(), { logLevel: 'error' })
  } catch (error) {
    if (error instanceof YAMLParseError && error.code === 'MULTIPLE_DOCS')
      throw refuse('has more than one YAML document; write one', error)
    // Below its first line is an excerpt; a quoted text is a part of the file too.
    const [reason = ''] = (error as Error).message.split('\n')
    throw refuse(`is not YAML or JSON: ${reason.replace(/: ".*"/, '').replace(/:$/, '')}`, error)
  }
  if (parsed === null) throw refuse(`is empty; write ${what}`)
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw refuse(`is not a mapping such as metadata: {name: shop}; write ${what}`)
  return parsed
}
