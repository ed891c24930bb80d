import { lookAtOwnPair } from './api/tls/pair.ts'
import type { Finding } from './config/load.ts'
import { readSigningKey, SigningKeyUnusable } from './content/signing.ts'
import type { StartError } from './errors/start-error.ts'
import { readToken, TokenFileUnusable } from './metrics/scrape-access.ts'

/**
 * Judges the keys and files that a configuration names, each as its room does at the start.
 * @param value effective value of a key by its dotted path; nothing where only the default is left
 * @param onUnseen told of a file that only root may read, and this process is not
 */
export async function judgeNamed(
  value: (path: string) => unknown,
  onUnseen: (file: string) => void,
): Promise<Finding[]> {
  const text = (path: string): string | undefined => {
    const found = value(path)
    return typeof found === 'string' && found !== '' ? found : undefined
  }
  return [
    ...(await judgePair(text('api.tls.certificateFile'), text('api.tls.keyFile'), onUnseen)),
    ...judgeSigningKey(text('content.signing.publicKey.base64EncodedValue')),
    ...(value('metrics.enabled') === false ? [] : await judgeToken(text('metrics.tokenFile'), onUnseen)),
  ]
}

async function judgePair(
  certificateFile: string | undefined,
  keyFile: string | undefined,
  onUnseen: (file: string) => void,
): Promise<Finding[]> {
  // One without the other is refused as such.
  if (certificateFile === undefined || keyFile === undefined) return []
  const found = await lookAtOwnPair({ certificateFile, keyFile })
  if (!('problems' in found)) return []
  return found.problems.flatMap((problem) => {
    if (isForRoot(problem)) {
      onUnseen(problem.file)
      return []
    }
    return [
      {
        path: `api.tls.${problem.file === keyFile ? 'keyFile' : 'certificateFile'}`,
        message: problem.message,
      },
    ]
  })
}

function judgeSigningKey(base64EncodedValue: string | undefined): Finding[] {
  if (base64EncodedValue === undefined) return []
  try {
    readSigningKey({ base64EncodedValue, description: '' })
    return []
  } catch (error) {
    if (!(error instanceof SigningKeyUnusable)) throw error
    return [{ path: 'content.signing.publicKey.base64EncodedValue', message: error.message }]
  }
}

async function judgeToken(file: string | undefined, onUnseen: (file: string) => void): Promise<Finding[]> {
  if (file === undefined) return []
  try {
    await readToken(file)
    return []
  } catch (error) {
    if (!(error instanceof TokenFileUnusable)) throw error
    if (!isForRoot(error)) return [{ path: 'metrics.tokenFile', message: error.message }]
    onUnseen(file)
    return []
  }
}

const isForRoot = ({ cause }: StartError): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === 'EACCES' && process.geteuid?.() !== 0
