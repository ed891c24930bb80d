import { shellWord } from '../base/printable.ts'
import { program } from '../base/program.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../base/address.ts'
import { NamedFileUnusable } from '../errors/start-error.ts'
import type { Logger } from '../system/log.ts'
import { FileRefused, readRegularFile } from '../system/regular-file.ts'
import { isForRoot } from '../errors/system-reason.ts'
import type { Finding, ReferenceCheck } from '../root/room.ts'

/** Decides which clients may read the metrics without a session. */
export interface ScrapeAccess {
  /**
   * Admits clients on the host itself, and clients that send the token of the file. The token is compared in constant time.
   * @param address the address of the peer, never one from a header, which a client can choose
   */
  admits(address: string, authorization: string | undefined): boolean
  /** Reads the token again. If the new one cannot be used, this is logged and the old token stays valid. */
  reload(): Promise<void>
}

/** The token file cannot be used; the message names the file, the reason and the command that mends it. */
export class TokenFileUnusable extends NamedFileUnusable {
  override readonly name = 'TokenFileUnusable'
}

const leastLength = 16
const mostBytes = 4_096

/**
 * Reads `metrics.tokenFile`. Its token is accepted for the metrics only.
 * @param file path of the file; without it, only clients on the loopback are admitted
 * @throws TokenFileUnusable
 */
export async function readScrapeAccess(file: string | undefined, log: Logger): Promise<ScrapeAccess> {
  if (file === undefined) return { admits: isLoopback, reload: () => Promise.resolve() }
  // Digests, since timingSafeEqual() requires equal lengths.
  let expected = digest(await readToken(file))
  return {
    admits(address, authorization) {
      if (isLoopback(address)) return true
      const sent = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
      return sent !== undefined && timingSafeEqual(digest(sent), expected)
    },
    async reload() {
      try {
        expected = digest(await readToken(file))
      } catch (error) {
        if (!(error instanceof TokenFileUnusable)) throw error
        log.error(
          { reason: error.message },
          `the new token of the metrics cannot be used; the old one stays valid; correct the cause given in reason, then: systemctl reload ${program.daemon}`,
        )
      }
    },
  }
}

/** @throws TokenFileUnusable */
export async function readToken(file: string): Promise<string> {
  const refuse = (reason: string, cause?: unknown) =>
    new TokenFileUnusable(`metrics.tokenFile: ${file} ${reason}`, { cause })
  const { bytes, stats } = await readRegularFile(file, mostBytes).catch((error: unknown) => {
    if (error instanceof FileRefused) throw refuse(`${error.reason}; put only the token into a regular file`)
    throw refuse(`cannot be read: ${(error as Error).message}`, error)
  })
  const { mode, uid } = stats
  if (uid !== 0 && uid !== process.getuid?.())
    throw refuse(`belongs to uid ${uid}, which could change it: chown root:root ${shellWord(file)}`)
  if ((mode & 0o077) !== 0)
    throw refuse(
      `has mode ${(mode & 0o777).toString(8)}, so others may read it: chmod 0600 ${shellWord(file)}`,
    )
  const token = bytes.toString().trim()
  if (!/^[\x21-\x7e]+$/.test(token) || token.length < leastLength)
    throw refuse(
      `must contain one word of at least ${leastLength} printable characters: openssl rand -hex 32 > ${shellWord(file)}`,
    )
  return token
}

const digest = (text: string) => createHash('sha256').update(text).digest()

const path = 'metrics.tokenFile'

/** Checks the file of the scrapers' token, where it is used. */
export async function checkTokenFile({ value, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  const file = value(path)
  if (typeof file !== 'string' || file === '' || value('metrics.enabled') === false) return []
  try {
    await readToken(file)
    return []
  } catch (error) {
    if (!(error instanceof TokenFileUnusable)) throw error
    if (!isForRoot(error)) return [{ path, message: error.message, isOfFile: true }]
    onUnseen(file)
    return []
  }
}
