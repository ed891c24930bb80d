import { isForRoot } from '../errors/unreadable.ts'
import type { Finding, ReferenceCheck } from '../room.ts'
import { lookAtOwnPair } from './pair.ts'

const certificateKey = 'api.tls.certificateFile'
const keyKey = 'api.tls.keyFile'

/** Judges an administrator's own pair, where one is named. */
export async function checkOwnPair({ value, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  const [certificateFile, keyFile] = [value(certificateKey), value(keyKey)]
  // One without the other is refused as such.
  if (typeof certificateFile !== 'string' || typeof keyFile !== 'string') return []
  const found = await lookAtOwnPair({ certificateFile, keyFile })
  if (!('problems' in found)) return []
  return found.problems.flatMap((error) => {
    if (!isForRoot(error))
      return [{ path: error.file === keyFile ? keyKey : certificateKey, message: error.message }]
    onUnseen(error.file)
    return []
  })
}
