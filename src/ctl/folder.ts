import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { Failure } from './exit-codes.ts'

/** Where the keys of hosts and the tokens stay: XDG Base Directory Specification 0.8. */
export function configFolder(environment: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME: base = '' } = environment
  return join(isAbsolute(base) ? base : join(homedir(), '.config'), 'edgehostctl')
}

/** A file of JSON that is ours alone; undefined when it is not there. */
export function readPrivate(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new Failure('failed', (error as Error).message, { cause: error })
  }
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new Failure('failed', `${path} is damaged; remove it and try again`, { cause: error })
  }
}

/** Replaces it whole (0600), in a folder for nobody else (0700): whoever reads it finds the old text or the new one. */
export function writePrivate(path: string, value: unknown): void {
  makePrivateFolder(dirname(dirname(path)))
  makePrivateFolder(dirname(path))
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`
  try {
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new Failure('failed', `${path} could not be written: ${(error as Error).message}`, { cause: error })
  }
}

/** @returns whether there was one */
export function removePrivate(path: string): boolean {
  try {
    rmSync(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o700)
}
