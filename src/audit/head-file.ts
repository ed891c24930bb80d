import { closeSync, existsSync, fsyncSync, readFileSync, writeSync } from 'node:fs'
import { openInPlace } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import { hex, type AuditHead } from './record.ts'

/** The head of the trail beside the database, by which a start sees that the database lost its last commits. */
export interface HeadFile {
  /** The newest record of which the daemon knew that it is on the disk; undefined where that is not known. */
  readonly last: AuditHead | undefined
  /** Whether there was no such file. */
  readonly isNew: boolean
  /** To be called after a synced commit only, so that the file is never ahead of an honest disk. */
  write(head: AuditHead): void
  /** Called when a loss has been recorded: an older head that came back after a power cut would report it once more. */
  sync(): void
  close(): void
}

const digits = 16
const form = new RegExp(`^(\\d{${digits}}) ([0-9a-f]{64})\\n$`)

/**
 * Opens the file, and makes it where it is missing. It is written in place and without a sync: a commit of the trail costs one more write(2).
 * After a power cut it may have an older head, which a start takes for no loss.
 */
export function openHeadFile(file: string, log: Logger): HeadFile {
  let descriptor: number | undefined
  let last: AuditHead | undefined
  let isBroken = false
  const isNew = !existsSync(file)
  const attempt = (work: () => void) => {
    try {
      work()
      isBroken = false
    } catch (error) {
      if (!isBroken)
        log.warn(
          { err: error, file },
          'the head of the audit trail cannot be written beside the database; a loss of its last records would not be seen',
        )
      isBroken = true
    }
  }
  attempt(() => {
    descriptor = openInPlace(file)
    const [, seq, hash = ''] = form.exec(readFileSync(descriptor, 'latin1').slice(0, 1_024)) ?? []
    if (seq !== undefined) last = { seq: Number(seq), hash: Buffer.from(hash, 'hex') }
  })
  return {
    last,
    isNew,
    write(head) {
      const opened = descriptor
      if (opened === undefined) return
      // Of one length always, so that nothing of an older head is left behind it.
      const text = `${String(head.seq).padStart(digits, '0')} ${hex(head.hash)}\n`
      attempt(() => writeSync(opened, text, 0, 'latin1'))
    },
    sync() {
      const opened = descriptor
      if (opened !== undefined) attempt(() => fsyncSync(opened))
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor)
      descriptor = undefined
    },
  }
}
