import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../base/address.ts'
import { ConfigurationError } from '../errors/start-error.ts'
import type { Logger } from '../system/log.ts'
import { FileRefused, readRegularFile } from '../system/regular-file.ts'

/** Who may read the metrics without a session. */
export interface ScrapeAccess {
  /**
   * Clients on the host itself, and those that send the token of the file, which is compared in a time that does not depend on
   * how much of it is right.
   * @param address of the peer, never out of a header, which could say anything
   */
  admits(address: string, authorization: string | undefined): boolean
  /** Reads the token again; one that cannot be used is logged, and the old token stays. */
  reload(): Promise<void>
}

/** The token file cannot be used; the message names the file, says why, and how to mend it. */
export class TokenFileUnusable extends ConfigurationError {
  override readonly name = 'TokenFileUnusable'
}

const leastLength = 16
const mostBytes = 4_096

/**
 * Reads `metrics.tokenFile`. Its token opens the metrics and nothing else.
 * @param file without one, only the loopback is let in
 * @throws TokenFileUnusable
 */
export async function readScrapeAccess(file: string | undefined, log: Logger): Promise<ScrapeAccess> {
  if (file === undefined) return { admits: isLoopback, reload: () => Promise.resolve() }
  // Of equal length, whatever was sent.
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
        log.error({ reason: error.message }, 'the token of the metrics cannot be used; the old one stays')
      }
    },
  }
}

/** @throws TokenFileUnusable */
export async function readToken(file: string): Promise<string> {
  const refuse = (reason: string, cause?: unknown) =>
    new TokenFileUnusable(`metrics.tokenFile: ${file} ${reason}`, { cause })
  const { bytes, stats } = await readRegularFile(file, mostBytes).catch((error: unknown) => {
    if (error instanceof FileRefused) throw refuse(`${error.reason}; it holds the token and nothing else`)
    throw refuse(`cannot be read: ${(error as Error).message}`, error)
  })
  const { mode, uid } = stats
  if (uid !== 0 && uid !== process.getuid?.())
    throw refuse(`belongs to uid ${uid}, who could change it: chown root:root ${file}`)
  if ((mode & 0o077) !== 0)
    throw refuse(`has mode ${(mode & 0o777).toString(8)}, so others may read it: chmod 0600 ${file}`)
  const token = bytes.toString().trim()
  if (!/^[\x21-\x7e]+$/.test(token) || token.length < leastLength)
    throw refuse(
      `must hold one word of at least ${leastLength} printable characters: openssl rand -hex 32 > ${file}`,
    )
  return token
}

const digest = (text: string) => createHash('sha256').update(text).digest()
