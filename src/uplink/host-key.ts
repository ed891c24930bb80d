import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile, sweepTemporary, syncFolder } from '../system/files.ts'
import { readRegularFile } from '../system/regular-file.ts'

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
const mostBytes = 4_096

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

/** A key that is on no disk, to ask with whether a registration would be accepted. */
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
