import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createContentProgram, type ContentProgram } from '../../src/content/program/content-program.ts'
import type { Unpacked, UnpackOrder } from '../../src/content/program/protocol.ts'
import { createRunner } from '../../src/system/runner.ts'
import { captureLog } from './https-server.ts'
import { contentProgram } from './programs.ts'
import { sha256, type RawMember } from './tar-bytes.ts'

// Thousands of files of a test do not wait for a disk.
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/**
 * A folder with a store, an upload, and the program that works on them.
 * @param parent the folder is in memory unless the test is about the disk
 */
export function createContentHome(parent = memory) {
  const home = mkdtempSync(join(parent, 'content-program-'))
  const { log, lines } = captureLog()
  const content = createContentProgram({ runner: createRunner(), program: contentProgram(), log })
  const blobs = join(home, 'store')
  mkdirSync(blobs)
  const makeUpload = (name = 'upload') => {
    const upload = join(home, name)
    mkdirSync(join(upload, 'blobs'), { recursive: true })
    mkdirSync(join(upload, 'parts'))
    return upload
  }
  return {
    home,
    blobs,
    content,
    lines,
    makeUpload,
    /** Unpacks bytes into an upload as the daemon does. */
    async unpack(
      upload: string,
      archive: Iterable<Buffer> | Readable,
      order: Partial<Omit<UnpackOrder, 'verb'>> = {},
    ): Promise<Unpacked> {
      return send(content.unpack({ upload, blobs, reserveBytes: 0, ...order }), archive)
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}

export type ContentHome = ReturnType<typeof createContentHome>

/** Sends an archive; ends when the program has ended, even before the last byte. */
export async function send(
  unpacking: ReturnType<ContentProgram['unpack']>,
  archive: Iterable<Buffer> | Readable,
): Promise<Unpacked> {
  const ended = new AbortController()
  const end = () => ended.abort()
  unpacking.result.then(end, end)
  for await (const chunk of archive as AsyncIterable<Buffer>) {
    if (ended.signal.aborted) break
    await unpacking.write(chunk)
  }
  await unpacking.end()
  return unpacking.result
}

/** Members of a layout: two blobs first, as skopeo writes them, then `index.json` and `oci-layout`. */
export function layoutMembers(contents: readonly (string | Buffer)[] = ['one', 'two']): RawMember[] {
  return [
    ...contents.map((content) => ({ name: `blobs/sha256/${sha256(content)}`, content })),
    { name: 'index.json', content: '{"schemaVersion":2,"manifests":[]}' },
    { name: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
  ]
}

/** Writes a layout to a folder, for tar(1). */
export function writeLayout(folder: string, contents: readonly (string | Buffer)[]): void {
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  for (const { name, content = '' } of layoutMembers(contents))
    writeFileSync(join(folder, name as string), content)
}

/** The blobs of a folder; throws if the content of one has another digest than its name. */
export function listWhole(folder: string): string[] {
  const names = readdirSync(folder).sort()
  for (const name of names) {
    const found = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex')
    if (found !== name) throw new Error(`${name} has the content of ${found}`)
  }
  return names
}

/** Kills the children of this process that run content.cjs. */
export function killChildren(): void {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
  for (const pid of children) {
    if (!lstatSync(`/proc/${pid}`, { throwIfNoEntry: false })) continue
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('content.cjs'))
      process.kill(Number(pid), 'SIGKILL')
  }
}
