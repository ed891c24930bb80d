import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import tty from 'node:tty'
import util, { type ParseArgsConfig } from 'node:util'
import { Script } from 'node:vm'

/** How a program ended, and what it wrote. */
export interface Ended {
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface Given {
  readonly env: NodeJS.ProcessEnv
  readonly input?: string | Buffer
  /** Standard output is a terminal of so many columns. */
  readonly columns?: number
  /** The code of the error with which each write to standard output fails. */
  readonly refusedOutput?: 'ENOSPC' | 'EPIPE'
}

type Body = (
  exports: object,
  require: (name: string) => unknown,
  module: { exports: unknown },
  filename: string,
  dirname: string,
  process: NodeJS.Process,
) => void

const load = createRequire(import.meta.url)
const bodies = new Map<string, Body>()

/** The code of a program as a function. It is compiled once: a copy in another folder is the same program. */
function bodyOf(file: string): Body {
  const code = fs.readFileSync(file, 'utf8')
  let body = bodies.get(code)
  if (!body) {
    const parameters = 'exports, require, module, __filename, __dirname, process'
    // A dynamic import of such a script would need an experimental part of Node; the modules of Node are all that it imports.
    const source = code.replaceAll(/\bimport\(("node:[^"]+")\)/g, 'Promise.resolve(require($1))')
    body = new Script(`(function (${parameters}) {${source}\n})`, {
      filename: file,
    }).runInThisContext() as Body
    bodies.set(code, body)
  }
  return body
}

const systemError = (code: keyof typeof os.constants.errno) =>
  Object.assign(new Error(code), { code, errno: -os.constants.errno[code] })

/**
 * Runs a command line of this package as it ships within this process: most of what a child takes is its start. It has standard streams, an
 * environment and signals of its own, no terminal, and the folder of its file; it may replace itself by a program beside it. What a process is
 * needed for is tested with one: signals, pipes that are closed, a terminal, a program that does not end.
 * @returns when it sets its exit code
 */
export function runInProcess(file: string, args: readonly string[], given: Given): Promise<Ended> {
  const input = Buffer.from(given.input ?? '')
  const written = { 1: [] as Buffer[], 2: [] as Buffer[] }
  const { promise, resolve } = Promise.withResolvers<Ended>()
  let position = 0

  const write = (fd: 1 | 2) => (data: string | Uint8Array, done?: unknown) => {
    written[fd].push(Buffer.from(data as string))
    if (typeof done === 'function') (done as () => void)()
    return true
  }
  const end = (exitCode: number | undefined) =>
    resolve({
      exitCode,
      stdout: Buffer.concat(written[1]).toString(),
      stderr: Buffer.concat(written[2]).toString(),
    })
  const isOutput = (fd: unknown): fd is 1 | 2 => fd === 1 || fd === 2

  const ownFs = {
    ...fs,
    writeSync(fd: number, data: string, ...rest: []) {
      if (!isOutput(fd)) return fs.writeSync(fd, data, ...rest)
      if (fd === 1 && given.refusedOutput) throw systemError(given.refusedOutput)
      write(fd)(data)
      return Buffer.byteLength(data)
    },
    readSync(fd: number, buffer: Buffer, ...rest: []) {
      if (fd !== 0) return fs.readSync(fd, buffer, ...rest)
      const length = input.copy(buffer, 0, position)
      position += length
      return length
    },
    readFileSync: (path: string, ...rest: []) =>
      (path as unknown) === 0 ? input.toString() : fs.readFileSync(path, ...rest),
    openSync(path: string, ...rest: [string]) {
      if (path === '/dev/tty') throw systemError('ENXIO')
      return fs.openSync(path, ...rest)
    },
  }
  const ownModules: Readonly<Record<string, unknown>> = {
    'node:fs': ownFs,
    'node:os': { ...os, homedir: () => given.env.HOME, setPriority: () => undefined },
    'node:tty': { ...tty, isatty: (fd: number) => fd === 1 && given.columns !== undefined },
  }

  function run(path: string, words: readonly string[]): void {
    const signals = new EventEmitter()
    let isReplaced = false
    const own: Readonly<Record<string, unknown>> = {
      argv: [process.execPath, path, ...words],
      env: { ...given.env },
      stdin: Readable.from([input]),
      stdout: { write: write(1), isTTY: given.columns !== undefined, columns: given.columns },
      stderr: { write: write(2), isTTY: false },
      on: signals.on.bind(signals),
      once: signals.once.bind(signals),
      off: signals.off.bind(signals),
      exit: end,
      // What called it goes on here, and is not listened to any more.
      execve(_program: string, [, next = '', ...rest]: string[]) {
        isReplaced = true
        run(next, rest)
      },
    }
    const ownProcess = new Proxy(process, {
      get: (real, name): unknown => (name in own ? own[name as string] : Reflect.get(real, name)),
      set(_real, name, value) {
        if (name === 'exitCode' && !isReplaced) end(value as number)
        return true
      },
    })
    const ofWords: Readonly<Record<string, unknown>> = {
      process: ownProcess,
      'node:util': {
        ...util,
        parseArgs: (config: ParseArgsConfig) => util.parseArgs({ args: [...words], ...config }),
      },
    }
    const require = (name: string) => ofWords[name] ?? ownModules[name] ?? (load(name) as unknown)
    const module = { exports: {} }
    bodyOf(path)(module.exports, require, module, path, dirname(path), ownProcess)
  }
  run(file, args)
  return promise
}
