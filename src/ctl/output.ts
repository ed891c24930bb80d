import type { OutputFailed } from '../program/standard-output.ts'
import { writeError, writeOutput } from '../program/standard-output.ts'
import { Failure } from './exit-codes.ts'
import type { Paper } from './facts.ts'
import { eachLine, wrap } from './text.ts'

export type Format = 'table' | 'json' | 'yaml'

/** Where a command says what it found. */
export interface Output {
  readonly format: Format
  readonly paper: Paper
  /** Bytes as they are. */
  write(bytes: Uint8Array): void
  /** What the API said: for people as `asText` lays it out, else whole. */
  show(value: unknown, asText: (paper: Paper) => string): Promise<void>
  /** What belongs to no reply: hints and progress. */
  note(text: string): void
}

export interface OutputOptions {
  readonly format: Format
  readonly paper: Paper
  readonly out?: (data: string | Uint8Array) => void
  readonly err?: (text: string) => void
}

/** By itself on standard output and standard error; what is written throws OutputFailed. */
export function createOutput(options: OutputOptions): Output {
  const { format, paper, out = writeOutput, err = writeError } = options
  return {
    format,
    paper,
    write: out,
    async show(value, asText) {
      if (format === 'table') out(asText(paper))
      else if (format === 'json') out(toJson(value))
      else out(await toYaml(value))
    },
    note: (text) => err(`${wrap(text, paper.columns).join('\n')}\n`),
  }
}

/** How a command ends whose output could not be written. A reader that has seen enough is no mistake. */
export const outputFailure = (error: OutputFailed): Failure =>
  error.isClosed ? new Failure('ok', '') : new Failure('failed', error.message, { cause: error })

/** Two spaces; invisible characters, which could steer a terminal, stand escaped, which means the same. */
function toJson(value: unknown): string {
  return `${eachLine(JSON.stringify(value, null, 2))}\n`
}

async function toYaml(value: unknown): Promise<string> {
  const { stringify } = await import('yaml')
  const text = stringify(value, { lineWidth: 0 })
  // The library escapes most of what is invisible; where it left some, JSON is YAML too.
  return eachLine(text) === text ? text : toJson(value)
}
