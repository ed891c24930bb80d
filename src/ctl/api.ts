import { closeSync, openSync, readSync } from 'node:fs'
import { isatty } from 'node:tty'
import { escapeInvisible, printable } from '../base/printable.ts'
import { systemReason } from '../errors/system-reason.ts'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import { jsonBody } from './client.ts'
import { Failure, type ExitName } from './exit-codes.ts'
import { errorOf, toFailure } from './reply.ts'
import type { Context, HostProgram } from './context.ts'

/** Asks for a path and prints the reply as it came; an error's body goes to standard error. */
export const getApi: HostProgram = (context) => askApi(context, 'GET', undefined)

/** The same with a method that takes a body. */
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
  // What cannot stand in a request line, RFC 9112, 3; Node would refuse it in words of its own.
  if (!/^\/[\x21-\x7e]*$/.test(path))
    throw new Failure('usage', `${printable(path)} is not a path; a path begins with / and has no spaces`)
  const body = data === undefined ? {} : jsonBody(readBody(data))
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

// Far above every JSON body that a host takes.
const bodyLimitBytes = 16_777_216

/** Also of a pipe, as a shell's <(…) is one; a device that never ends is refused. */
function readBody(file: string): Buffer {
  const body = createGrowingBuffer(bodyLimitBytes)
  const part = Buffer.allocUnsafe(65_536)
  try {
    const source = file === '-' ? 0 : openSync(file, 'r')
    try {
      for (let length = 0; (length = readSync(source, part)) > 0;)
        if (!body.add(part.subarray(0, length)))
          throw new Failure('usage', `--data: ${printable(file)} has more than ${bodyLimitBytes} bytes`)
    } finally {
      if (source !== 0) closeSync(source)
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('usage', `--data: ${printable(file)} cannot be read: ${systemReason(error as Error)}`, {
      cause: error,
    })
  }
  return body.bytes()
}

/** A body for a terminal: nothing in it may steer that, and the prompt gets a line of its own. */
function harmless(body: Buffer): Buffer {
  if (body.length === 0) return body
  const lines = body
    .toString()
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
  return Buffer.from(`${lines.map((line) => escapeInvisible(line)).join('\n')}\n`)
}
