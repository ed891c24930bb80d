import { isatty } from 'node:tty'
import { escapeInvisible, printable } from '../base/printable.ts'
import { jsonBody, type Context, type HostProgram } from './client.ts'
import { Failure, type ExitName } from './exit-codes.ts'
import { readBody } from './request-body.ts'
import { errorOf, toFailure } from './reply.ts'

/** Requests a path and prints the reply unchanged; the body of an error is printed to standard error. */
export const getApi: HostProgram = (context) => askApi(context, 'GET', undefined)

/** The same with a method that has a body. */
export const sendApi =
  (method: string): HostProgram<'data'> =>
  (context) =>
    askApi(context, method, context.line.options.data)

async function askApi(
  { client, line, output }: Context,
  method: string,
  data: string | undefined,
): Promise<ExitName | undefined> {
  const [path = ''] = line.arguments
  // Characters that a request line cannot contain (RFC 9112, 3); Node's own error would not name the argument.
  if (!/^\/[\x21-\x7e]*$/.test(path))
    throw new Failure('usage', `${printable(path)} is not a path; a path begins with / and has no spaces`)
  const body = data === undefined ? {} : jsonBody(readBody(data, '--data'))
  const reply = await client.ask({ method, path, ...body })
  const { status, body: answer } = reply
  if (status >= 200 && status <= 299) {
    output.write(isatty(1) ? harmless(answer) : answer)
    return undefined
  }
  const failure = toFailure(reply)
  const isExplained = errorOf(reply) !== undefined
  process.stderr.write(isExplained && !isatty(2) ? answer : harmless(answer))
  if (!isExplained) throw failure
  return failure.exitName
}

/** A body for a terminal: without control characters, and with a line break at its end. */
function harmless(body: Buffer): Buffer {
  if (body.length === 0) return body
  const lines = body
    .toString()
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
  return Buffer.from(`${lines.map((line) => escapeInvisible(line)).join('\n')}\n`)
}
