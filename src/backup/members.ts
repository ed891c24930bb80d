import { open } from 'node:fs/promises'
import { BackupRefused } from './refused.ts'

/** A file in a backup. */
export interface Member {
  /** Where it belongs: below the state folder, below the folder of the configuration, or at its own path. */
  readonly place: 'state' | 'configuration' | 'path'
  /** Relative to its place; absolute for `path`. */
  readonly path: string
  readonly mode: number
  readonly sizeBytes: number
}

/** A file to put into a backup: its bytes, or where they are. */
export type Source = Omit<Member, 'sizeBytes'> & {
  readonly from: Buffer | { readonly file: string; readonly sizeBytes: number }
}

const longestHead = 65_536

/** For a file that was there when the backup began. @throws BackupRefused, or the error if it is another one */
export function gone(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ENOENT') throw error
  throw new BackupRefused(`${error.path ?? 'a file'} was deleted while the backup was made; try again`)
}

function headOf(value: object): Buffer {
  const json = Buffer.from(JSON.stringify(value))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(json.length)
  return Buffer.concat([length, json])
}

/** The members in a row: for each the length of its description, the description as JSON, its bytes; then their number. */
export async function* packMembers(sources: readonly Source[]): AsyncGenerator<Buffer> {
  for (const { from, place, path, mode } of sources) {
    const sizeBytes = Buffer.isBuffer(from) ? from.length : from.sizeBytes
    yield headOf({ place, path, mode, sizeBytes } satisfies Member)
    if (Buffer.isBuffer(from)) yield from
    else {
      let left = sizeBytes
      if (left > 0) {
        const file = await open(from.file).catch(gone)
        const stream = file.createReadStream({ end: left - 1, highWaterMark: 262_144 })
        for await (const part of stream as AsyncIterable<Buffer>) {
          left -= part.length
          yield part
        }
      }
      if (left !== 0) throw new BackupRefused(`${from.file} became shorter while it was read; try again`)
    }
  }
  yield headOf({ members: sources.length })
}

/** Receiver of each member: its description, and its bytes, which have to be read. */
export type Receive = (member: Member, bytes: AsyncIterable<Buffer>) => Promise<void>

/** Reads what `packMembers` wrote. @throws BackupRefused where it is something else */
export async function unpackMembers(content: AsyncIterator<Buffer>, receive: Receive): Promise<void> {
  let waiting: Buffer = Buffer.alloc(0)
  async function more(): Promise<void> {
    const next = await content.next()
    if (next.done === true) throw unreadable()
    waiting = waiting.length === 0 ? next.value : Buffer.concat([waiting, next.value])
  }
  async function take(length: number): Promise<Buffer> {
    while (waiting.length < length) await more()
    const taken = waiting.subarray(0, length)
    waiting = waiting.subarray(length)
    return taken
  }
  async function* bytesOf(sizeBytes: number): AsyncGenerator<Buffer> {
    for (let left = sizeBytes; left > 0;) {
      if (waiting.length === 0) await more()
      const part = await take(Math.min(left, waiting.length))
      left -= part.length
      yield part
    }
  }
  for (let count = 0; ; count += 1) {
    const length = (await take(4)).readUInt32BE()
    if (length > longestHead) throw unreadable()
    const head = JSON.parse((await take(length)).toString()) as Partial<Member> & { members?: number }
    if (head.members !== undefined) {
      if (head.members !== count || waiting.length > 0) throw unreadable()
      return
    }
    const member = checkMember(head)
    const bytes = bytesOf(member.sizeBytes)
    await receive(member, bytes)
    // Bytes that the receiver has not read.
    while ((await bytes.next()).done !== true);
  }
}

const unreadable = () => new BackupRefused('this program did not write the content of the file')

function checkMember(head: Partial<Member>): Member {
  const { place, path, mode, sizeBytes } = head
  const isPlaced =
    typeof path === 'string' &&
    !path.includes('\0') &&
    !path.split('/').some((part) => part === '..' || part === '.') &&
    (place === 'path'
      ? path.startsWith('/')
      : (place === 'state' || place === 'configuration') && !/^\/|^$|\/\//.test(path))
  const isWhole =
    isPlaced && Number.isInteger(mode) && Number.isSafeInteger(sizeBytes) && (sizeBytes ?? -1) >= 0
  if (!isWhole) throw unreadable()
  return head as Member
}
