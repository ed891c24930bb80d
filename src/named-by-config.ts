import { lookAtOwnPair } from './certificate/pair.ts'
import type { Finding } from './config/load.ts'
import { readSigningKey, SigningKeyUnusable } from './upload/signing.ts'
import type { StartError } from './errors/start-error.ts'
import { readToken, TokenFileUnusable } from './metrics/scrape-access.ts'

/** Why a room would refuse the value of a key. */
interface Refusal {
  readonly path: string
  readonly error: StartError
}

/**
 * Judges the keys and files that a configuration names, each as its room does at the start.
 * @param value effective value of a key by its dotted path; nothing where only the default is left
 * @param onUnseen told of a file that only root may read, and this process is not
 */
export async function judgeNamed(
  value: (path: string) => unknown,
  onUnseen: (file: string) => void,
): Promise<Finding[]> {
  const text = (path: string): string => {
    const found = value(path)
    return typeof found === 'string' ? found : ''
  }
  const refusals = [
    ...(await judgePair(text(tls.certificateFile), text(tls.keyFile))),
    ...(await judge(signingKey, text(signingKey), SigningKeyUnusable, (base64EncodedValue) =>
      readSigningKey({ base64EncodedValue, description: '' }),
    )),
    ...(value('metrics.enabled') === false
      ? []
      : await judge(tokenFile, text(tokenFile), TokenFileUnusable, readToken)),
  ]
  return refusals.flatMap(({ path, error }) => {
    if (!isForRoot(error)) return [{ path, message: error.message }]
    onUnseen(text(path))
    return []
  })
}

const tls = { certificateFile: 'api.tls.certificateFile', keyFile: 'api.tls.keyFile' }
const signingKey = 'content.signing.publicKey.base64EncodedValue'
const tokenFile = 'metrics.tokenFile'

async function judgePair(certificateFile: string, keyFile: string): Promise<Refusal[]> {
  // One without the other is refused as such.
  if (certificateFile === '' || keyFile === '') return []
  const found = await lookAtOwnPair({ certificateFile, keyFile })
  if (!('problems' in found)) return []
  return found.problems.map((error) => ({
    path: error.file === keyFile ? tls.keyFile : tls.certificateFile,
    error,
  }))
}

async function judge(
  path: string,
  value: string,
  kind: typeof SigningKeyUnusable | typeof TokenFileUnusable,
  read: (value: string) => unknown,
): Promise<Refusal[]> {
  if (value === '') return []
  try {
    await read(value)
    return []
  } catch (error) {
    if (!(error instanceof kind)) throw error
    return [{ path, error }]
  }
}

const isForRoot = ({ cause }: StartError): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'EACCES' && process.geteuid?.() !== 0
