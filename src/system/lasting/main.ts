import { spawn, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { childEnvironment } from '../child.ts'
import { createOutputFile, type OutputFile } from './output-file.ts'
import {
  reserved,
  runFiles,
  type CommandEnd,
  type RunExit,
  type RunFiles,
  type RunOrder,
} from './run-files.ts'

// The keeper of one run: keeper.cjs <folder>. It starts the command of `order.json`, and writes its output and how it
// ended into the folder. It is controlled by signals only: SIGUSR2 ends the command, and `exit` says that it was stopped.
// When another signal ends the keeper, as at the shutdown of the host, it writes no `exit`, since the exit code of a
// command that was cut off says nothing about its work.

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
