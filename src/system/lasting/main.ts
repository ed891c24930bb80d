import {
  fsyncSync,
  writeSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
} from 'node:fs'
import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import { createLineSplitter, createTail } from '../../base/lines.ts'
import {
  maxOutputBytes,
  reserved,
  runFiles,
  type CommandEnd,
  type RunExit,
  type RunFiles,
  type RunOrder,
} from './run-files.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { childEnvironment } from '../child.ts'

/** The file that receives the output of a command. */
interface OutputFile {
  /** @returns a function that writes a chunk from a pipe of the command; lines of two pipes are not mixed */
  addPipe(): (chunk: Uint8Array) => void
  /** Writes the rest and syncs the file. @returns the number of omitted bytes, since the file or the disk is full */
  finish(): number
}

const longestPiece = 65_536
// Characters of at most four bytes in UTF-8, so the last lines and their heading need well below `roomForTail`.
const tailLength = 65_536
const roomForTail = 524_288

/**
 * Writes the output of a command to a file. Once the file is nearly at its limit, or a write fails, the rest of the output
 * is left out, except for its last lines, which are appended at the end. The command is neither ended nor blocked by this.
 * @param file descriptor, opened for appending, of an empty file
 */
function createOutputFile(file: number, limit = maxOutputBytes): OutputFile {
  let writtenBytes = 0
  let leftOutBytes = 0
  let endsLine = true
  const flushes: (() => void)[] = []
  const tail = createTail(tailLength)
  const leftOut = createLineSplitter((line) => tail.add(line))

  /** @returns the number of these bytes in the file */
  function append(bytes: Uint8Array, most: number): number {
    if (writtenBytes + bytes.length > most) return 0
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(file, bytes, done)
    } catch {
      // ENOSPC, EDQUOT, EIO: what was written before stays.
    }
    writtenBytes += done
    if (done > 0) endsLine = bytes[done - 1] === 0x0a
    return done
  }
  function write(bytes: Uint8Array): void {
    const done = leftOutBytes === 0 ? append(bytes, limit - roomForTail) : 0
    leftOutBytes += bytes.length - done
    leftOut.add(bytes.subarray(done))
  }

  return {
    addPipe() {
      const line = createGrowingBuffer(longestPiece)
      const flush = () => {
        if (line.bytes().length > 0) write(line.bytes())
        line.clear()
      }
      const keep = (piece: Uint8Array) => {
        if (line.add(piece)) return
        flush()
        if (!line.add(piece)) write(piece)
      }
      flushes.push(flush)
      return (chunk) => {
        const whole = chunk.lastIndexOf(0x0a) + 1
        if (whole > 0) {
          keep(chunk.subarray(0, whole))
          flush()
        }
        keep(chunk.subarray(whole))
      }
    },
    finish() {
      for (const flush of flushes) flush()
      if (leftOutBytes > 0) {
        leftOut.end()
        const heading = `${endsLine ? '' : '\n'}[${leftOutBytes} bytes of output are left out here, except for these last lines]\n`
        append(Buffer.from(heading + tail.text()), limit)
      }
      try {
        fsyncSync(file)
      } catch {
        // The keeper still has to record the end of the command.
      }
      return leftOutBytes
    },
  }
}

// The keeper of one run: keeper.cjs <folder>. It starts the command of `order.json`, and writes its output and its end into the folder. It
// is controlled by signals only: SIGUSR2 ends the command, and `exit` says that it was stopped. When another signal ends the keeper, as at
// the shutdown of the host, it writes no `exit`, since the exit code of a command that was cut off says nothing about its work.

const killAfterMs = 10_000
// Processes that the command left behind may still write, or hold the pipes open for ever.
const pipesAfterMs = 5_000

type End = Pick<RunExit, 'endedBy'> & { readonly isWrittenDown: boolean }

function keep(files: RunFiles): void {
  process.umask(0o022)
  const order = JSON.parse(readFileSync(files.order, 'utf8')) as RunOrder
  const input = takeInput(files.input)
  const output = createOutputFile(openSync(files.output, 'a'))
  let end: End | undefined
  let child: ChildProcess | undefined

  const endCommand = (why: End) => {
    end ??= why
    signalGroup(child, 'SIGTERM')
    setTimeout(() => signalGroup(child, 'SIGKILL'), killAfterMs).unref()
  }
  process.on('SIGUSR2', () => endCommand({ endedBy: 'stop', isWrittenDown: true }))
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => endCommand({ isWrittenDown: false }))

  const finish = (how: CommandEnd) => {
    signalGroup(child, 'SIGKILL')
    const leftOutBytes = output.finish()
    const endedBy = end?.endedBy
    const exit = { ...how, endedAt: Date.now(), leftOutBytes, ...(endedBy ? { endedBy } : {}) }
    if (end?.isWrittenDown ?? true) writeExit(files, exit)
    process.exit(0)
  }
  writeOver(files.lock, process.pid)
  try {
    child = start(order, input, output, finish)
  } catch (error) {
    // For example an argument that contains a NUL.
    finish(notStarted(error))
  }
  setTimeout(() => endCommand({ endedBy: 'time', isWrittenDown: true }), order.timeoutMs)
}

function start(
  { program, args, environment }: RunOrder,
  input: number | 'ignore',
  output: OutputFile,
  finish: (how: CommandEnd) => void,
): ChildProcess {
  const child = spawn(program, args, {
    // A process group of its own, which is signalled as a whole.
    detached: true,
    stdio: [input, 'pipe', 'pipe'],
    env: { ...childEnvironment, ...environment },
    cwd: '/',
  })
  if (input !== 'ignore') closeSync(input)
  const pipes = [child.stdout, child.stderr].filter((stream) => stream !== null)
  for (const stream of pipes) stream.on('data', output.addPipe())
  child.on('error', (error) => finish(notStarted(error)))
  child.on('exit', () => {
    setTimeout(() => pipes.forEach((stream) => stream.destroy()), pipesAfterMs)
  })
  child.on('close', (exitCode, signal) =>
    finish(exitCode === null ? { kind: 'killed', signal: String(signal) } : { kind: 'exited', exitCode }),
  )
  return child
}

const notStarted = (error: unknown) => {
  const { code, message } = error as NodeJS.ErrnoException
  return { kind: 'not-started', reason: code ?? message } as const
}

/** Opens the input of the command and removes its name, so that a secret is on the disk only for a moment. */
function takeInput(path: string): number | 'ignore' {
  if (!existsSync(path)) return 'ignore'
  const input = openSync(path, 'r')
  unlinkSync(path)
  return input
}

/** Signals the process group of the command. Its number is not reused while a process of the group lives. */
function signalGroup(child: ChildProcess | undefined, signal: NodeJS.Signals): void {
  if (child?.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // All processes of the group have ended.
  }
}

function writeExit(files: RunFiles, exit: RunExit): void {
  writeOver(files.reserve, exit)
  renameSync(files.reserve, files.exit)
  const folder = openSync(files.folder, 'r')
  fsyncSync(folder)
}

/** Overwrites a file in place: its blocks on the disk are already allocated. */
function writeOver(path: string, value: unknown): void {
  const file = openSync(path, 'r+')
  writeSync(file, reserved(value), 0)
  fsyncSync(file)
  closeSync(file)
}

keep(runFiles(process.argv[2] ?? ''))
