import { join, relative, sep } from 'node:path'
import { NamedFileUnusable } from '../errors/start-error.ts'
import { isForRoot } from '../errors/system-reason.ts'
import type { Finding, ReferenceCheck } from '../root/room.ts'
import { contentFolder, contentRoot, requireMount } from './store/folder.ts'
import { requireOwnFolder } from './store/own-folder.ts'
import { isLoopback } from '../base/address.ts'
import { parseSigningKey, SigningKeyUnusable } from '../upload/signing.ts'

/** Folders of the state folder that other rooms empty. */
const usedFolders: ReadonlySet<string> = new Set(['', 'cluster', 'definitions', 'platform', 'tls'])

/**
 * Checks the folder of the content: that a file system is mounted there, if it has to be, and that it has no files of another program
 * which the store would remove.
 */
export async function checkFolder({ value, stateDirectory, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  const directory = value('content.directory')
  const root = contentRoot(typeof directory === 'string' ? directory : '', stateDirectory)
  const inside = relative(stateDirectory, root).split(sep)[0] ?? ''
  if (usedFolders.has(inside))
    return [
      {
        path: 'content.directory',
        message: `${root} is ${inside === '' ? 'the state folder itself' : `inside ${join(stateDirectory, inside)}`}, where edgehostd makes and removes files of its own; name another folder, or leave it out for ${contentRoot('', stateDirectory)}`,
      },
    ]
  let path = 'content.requireMount'
  try {
    if (value(path) === true) await requireMount(root)
    path = 'content.directory'
    await requireOwnFolder(contentFolder(root))
    return []
  } catch (error) {
    if (error instanceof NamedFileUnusable) return [{ path, message: error.message, isOfFile: true }]
    if (isForRoot({ cause: error })) onUnseen(root)
    // A folder that cannot be read is no reason not to start: each use of the content reports it.
    else if (path === 'content.requireMount') throw error
    return []
  }
}

const anonymousPath = 'content.registry.anonymous'

/** The problem of the section `content.registry`; undefined without one. */
export const describeOpenRegistry = ({
  address,
  anonymous,
}: {
  readonly address: string
  readonly anonymous: boolean
}): string | undefined =>
  anonymous && !isLoopback(address)
    ? `${anonymousPath} is true, but content.registry.address is ${address}: without a password the registry listens on loopback only; set ${anonymousPath} to false, or the address to 127.0.0.1`
    : undefined

/** Checks that the registry is open to the programs of this host at most. */
export function checkRegistry({ value }: ReferenceCheck): Finding[] {
  const address = value('content.registry.address')
  const message = describeOpenRegistry({
    address: typeof address === 'string' ? address : '127.0.0.1',
    anonymous: value(anonymousPath) === true,
  })
  return message === undefined ? [] : [{ path: anonymousPath, message }]
}

const signingKeyPath = 'content.signing.publicKey.base64EncodedValue'

/** Checks the public key for uploads, if one is configured. */
export async function checkSigningKey({ value }: ReferenceCheck): Promise<Finding[]> {
  const base64EncodedValue = value(signingKeyPath)
  if (typeof base64EncodedValue !== 'string' || base64EncodedValue === '') return []
  try {
    parseSigningKey({ base64EncodedValue, description: '' })
    return []
  } catch (error) {
    if (!(error instanceof SigningKeyUnusable)) throw error
    return [{ path: signingKeyPath, message: error.message }]
  }
}
