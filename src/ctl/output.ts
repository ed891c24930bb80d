import { jsonForYaml } from '../base/json.ts'
import type { OutputFailed } from '../program/standard-output.ts'
import { writeError, writeOutput } from '../program/standard-output.ts'
import { Failure } from './exit-codes.ts'
import type { Paper } from './facts.ts'
import { eachLine, wrap } from './text.ts'

export type Format = 'table' | 'json' | 'yaml'

/** Output of a command. */
export interface Output {
  readonly format: Format
  readonly paper: Paper
  /** Writes bytes unchanged. */
  write(bytes: Uint8Array): void
  /** Writes a reply of the API: as the text of `asText`, or the whole reply as JSON or YAML. */
  show(value: unknown, asText: (paper: Paper) => string): Promise<void>
  /** Writes hints and progress to standard error. */
  note(text: string): void
}

export interface OutputOptions {
  readonly format: Format
  readonly paper: Paper
  readonly out?: (data: string | Uint8Array) => void
  readonly err?: (text: string) => void
}

/** Writes to standard output and standard error by default; a failed write throws OutputFailed. */
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

/** How a command ends whose output could not be written. A closed pipe, as with `| head`, is not an error. */
export const outputFailure = (error: OutputFailed): Failure =>
  error.isClosed ? new Failure('ok', '') : new Failure('failed', error.message, { cause: error })

/** JSON, indented by two spaces. Control characters, which could change a terminal, are escaped; the value stays the same. */
function toJson(value: unknown): string {
  return `${eachLine(JSON.stringify(value, null, 2))}\n`
}

/** YAML that kubectl and other readers of go-yaml read as the same. */
async function toYaml(value: unknown): Promise<string> {
  // Loaded here: most commands do not need yaml.
  const { writeYaml } = await import('../base/write-yaml.ts')
  const text = writeYaml(value)
  // The library escapes most control characters. If it has left one, JSON is used, which is YAML too.
  return eachLine(text) === text ? text : `${eachLine(jsonForYaml(value, 2))}\n`
}
