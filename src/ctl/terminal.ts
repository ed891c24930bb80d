import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { isatty, ReadStream } from 'node:tty'
import { Failure } from './exit-codes.ts'
import type { Paper } from './layout.ts'

/** Questions to the user. */
export interface Terminal {
  /** Whether there is someone to ask. */
  isThere(): boolean
  /** Asks a question and returns the typed line; `undefined` when there is no terminal. */
  ask(question: string): string | undefined
  /** The same without an echo, for a password. */
  askSecretly(question: string): Promise<string | undefined>
}

/** Uses the controlling terminal, /dev/tty, even if standard input is redirected. */
export function createTerminal(): Terminal {
  return {
    isThere() {
      const tty = openTerminal()
      if (tty !== undefined) closeSync(tty)
      return tty !== undefined
    },
    ask(question) {
      const tty = openTerminal()
      if (tty === undefined) return undefined
      try {
        writeSync(tty, question)
        const letter = Buffer.alloc(1)
        const line: number[] = []
        while (readSync(tty, letter) === 1 && letter[0] !== 10) line.push(letter[0] ?? 0)
        return Buffer.from(line).toString()
      } finally {
        closeSync(tty)
      }
    },
    async askSecretly(question) {
      const tty = openTerminal()
      if (tty === undefined) return undefined
      const input = new ReadStream(tty)
      const restore = () => input.setRawMode(false)
      // Restores the terminal at signals too, which end Node without an `exit` event.
      const onSignal = () => {
        restore()
        process.exit(143)
      }
      process.once('SIGTERM', onSignal).once('SIGHUP', onSignal).once('exit', restore)
      input.setRawMode(true)
      writeSync(tty, question)
      try {
        return await readLine(input)
      } finally {
        restore()
        writeSync(tty, '\n')
        process.off('SIGTERM', onSignal).off('SIGHUP', onSignal).off('exit', restore)
        input.destroy()
      }
    },
  }
}

/** Reads a line from a terminal in raw mode, in which editing keys are bytes. */
function readLine(input: ReadStream): Promise<string> {
  const typed: number[] = []
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const end = () => resolve(Buffer.from(typed).toString())
  input.on('data', (chunk: Buffer) => {
    for (const byte of chunk) {
      // Bytes after the end have no effect, since the promise is settled.
      if (byte === 3) reject(new Failure('interrupted', ''))
      // Enter, or Ctrl-D.
      else if (byte === 13 || byte === 10 || byte === 4) end()
      // Ctrl-U removes all, Backspace one character, which may be several bytes of UTF-8.
      else if (byte === 21) typed.length = 0
      else if (byte === 127 || byte === 8) {
        while (((typed.pop() ?? 0) & 0xc0) === 0x80);
      } else typed.push(byte)
    }
  })
  input.once('end', end).once('error', reject)
  return promise
}

function openTerminal(): number | undefined {
  try {
    return openSync('/dev/tty', 'r+')
  } catch {
    return undefined
  }
}

/** Width and colours of standard output. */
export function readPaper(environment: NodeJS.ProcessEnv, noColor: boolean): Paper {
  // process.stdout is used only for a terminal, since it would make a pipe non-blocking.
  if (!isatty(1)) return { columns: Infinity, isColoured: false }
  // As in the programs of systemd, COLUMNS wins over the width of the terminal.
  const columns = Number(environment.COLUMNS) || process.stdout.columns
  // https://no-color.org: any value but the empty one.
  const isColoured = !noColor && !environment.NO_COLOR && environment.TERM !== 'dumb'
  return { columns: columns >= 1 ? Math.floor(columns) : 80, isColoured }
}

const interruptedCode = 130

/**
 * Calls `work` at Ctrl-C, and ends the program as a shell expects it.
 * @returns a function that removes the handler
 */
export function onInterrupt(work: () => void): () => void {
  const end = () => {
    work()
    process.exit(interruptedCode)
  }
  process.once('SIGINT', end)
  return () => void process.off('SIGINT', end)
}
