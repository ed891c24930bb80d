import { unlink, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemReason } from '../errors/system-reason.ts'
import { syncFolder, replaceFile, sweepTemporary } from '../system/files.ts'
import { readRegularFile } from '../system/regular-file.ts'
import type { Logger } from '../system/log.ts'
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'

/**
 * The name under which this host is registered: the one that its administrator has given it, otherwise its host name, each with dashes where the
 * platform does not accept its characters, otherwise its id. `localhost` is a name of every host.
 * @param given `metadata.name` of this host, which is the id where none was given
 */
export function registeredName(given: string, hostName: string, id: string): string {
  const names = [given === id ? '' : given, /^localhost(\.|$)/i.test(hostName) ? '' : hostName, id]
  // An id may end with a dot or a dash.
  return names.map(toAccepted).find((name) => name !== '') ?? 'host'
}

const toAccepted = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 253)
    .replace(/[^A-Za-z0-9]+$/, '')

/** The file of the registration token, which is there until the host is registered. */
interface TokenFile {
  /** The token; undefined where there is no file, or none that can be read. */
  readToken(): Promise<string | undefined>
  removeToken(): Promise<void>
}

// Far longer than a token.
const mostBytes = 4_096

export function createTokenFile(path: string | undefined, log: Logger): TokenFile {
  let hasWarned = false
  const warn = (error: unknown, what: string) => {
    if (!hasWarned)
      log.warn(
        { file: path, reason: systemReason(error as NodeJS.ErrnoException) },
        `the file of the registration token ${what}`,
      )
    hasWarned = true
  }
  return {
    async readToken() {
      if (path === undefined) return undefined
      try {
        const token = (await readRegularFile(path, mostBytes)).bytes.toString().trim()
        return token === '' ? undefined : token
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          warn(error, 'cannot be read; connect again: edgehostctl platform connect')
        return undefined
      }
    },
    async removeToken() {
      if (path === undefined) return
      try {
        await unlink(path)
        await syncFolder(dirname(path))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          warn(error, 'cannot be removed by the daemon; remove it, since others may register hosts with it')
      }
    },
  }
}

/** The Ed25519 key by which the platform knows this host. */
export interface HostKey {
  /** The 32 bytes of the public key, base64url. */
  readonly publicKey: string
  /** Signs a login: a compact JWS (RFC 7515) with EdDSA (RFC 8037). */
  prove(claims: { readonly sub: string; readonly nonce: string; readonly gen: number }): string
}

/** Folder in the state folder. */
export const platformFolder = 'platform'
const keyFile = 'host-key.pem'

/**
 * The key of this host in the state folder.
 * @returns undefined where none was made yet
 * @throws the system's error, and Error for a file that is no Ed25519 key: a new key would be another host for the platform
 */
export async function readHostKey(stateDirectory: string): Promise<HostKey | undefined> {
  const path = join(stateDirectory, platformFolder, keyFile)
  const found = await readRegularFile(path, mostBytes).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  })
  return found && toHostKey(parse(found.bytes, path))
}

/** The same, and makes the key where there is none: mode 0600, on the disk when this returns. */
export async function openHostKey(stateDirectory: string): Promise<HostKey> {
  const present = await readHostKey(stateDirectory)
  if (present) return present
  const { privateKey } = generateKeyPairSync('ed25519')
  const folder = join(stateDirectory, platformFolder)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await sweepTemporary(folder, keyFile)
  await replaceFile(join(folder, keyFile), privateKey.export({ format: 'pem', type: 'pkcs8' }), 0o600)
  await syncFolder(stateDirectory)
  return toHostKey(privateKey)
}

/** A key that is on no disk, for the dry run of a registration. */
export const passingHostKey = (): HostKey => toHostKey(generateKeyPairSync('ed25519').privateKey)

function parse(pem: Buffer, path: string): KeyObject {
  const problem = `${path} is no Ed25519 key; restore it from a backup, or remove it, have the old record of this host deleted on the platform, and connect again`
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (error) {
    throw new Error(problem, { cause: error })
  }
  throw new Error(problem)
}

function toHostKey(key: KeyObject): HostKey {
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    publicKey: x,
    prove(claims) {
      const signed = `${encode({ alg: 'EdDSA', typ: 'edge-login+jwt' })}.${encode(claims)}`
      return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
    },
  }
}
