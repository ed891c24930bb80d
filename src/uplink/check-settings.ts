import { checkAuthorities } from '../outgoing/authorities.ts'
import type { Finding, ReferenceCheck } from '../root/room.ts'

/** Checks the section `platform` with `host.mode: connected`, and the file of authorities. */
export async function checkSettings({ value, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  if (value('host.mode') !== 'connected') return []
  if (value('platform.url') === undefined)
    return [{ path: 'platform.url', message: 'platform.url is needed with host.mode: connected' }]
  // The pattern of the schema cannot say which ports there are.
  const unusable = ['platform.url', 'platform.proxy'].flatMap((path) => {
    const url = value(path)
    return typeof url !== 'string' || URL.canParse(url)
      ? []
      : [{ path, message: `${path}, ${url}, is not a URL; a port is a number up to 65535` }]
  })
  if (unusable.length > 0) return unusable
  const file = value('platform.caFile')
  if (typeof file !== 'string') return []
  if (value('platform.fingerprint') !== undefined)
    return [
      {
        path: 'platform.caFile',
        message: 'platform.caFile has no effect beside platform.fingerprint; remove one of them',
      },
    ]
  return checkAuthorities('platform.caFile', file, onUnseen)
}
