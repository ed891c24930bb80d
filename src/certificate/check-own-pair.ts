import { isForRoot } from '../errors/system-reason.ts'
import type { Finding, ReferenceCheck } from '../root/room.ts'
import { inspectOwnPair } from './pair.ts'

const certificateKey = 'api.tls.certificateFile'
const keyKey = 'api.tls.keyFile'

/** Checks an administrator's own pair, if one is configured. */
export async function checkOwnPair({ value, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  const [certificateFile, keyFile] = [value(certificateKey), value(keyKey)]
  // A missing half is reported elsewhere, by the check of paired keys.
  if (typeof certificateFile !== 'string' || typeof keyFile !== 'string') return []
  const found = await inspectOwnPair({ certificateFile, keyFile })
  if (!('problems' in found)) return []
  return found.problems.flatMap((error) => {
    if (!isForRoot(error))
      return [
        { path: error.file === keyFile ? keyKey : certificateKey, message: error.message, isOfFile: true },
      ]
    onUnseen(error.file)
    return []
  })
}
