import { checkAuthorities } from '../outgoing/authorities.ts'
import type { Finding, ReferenceCheck } from '../root/room.ts'

/** Checks the references in the section `clouds`. */
export async function checkSettings({ value, onUnseen }: ReferenceCheck): Promise<Finding[]> {
  const [authUrl, caFile] = [value('clouds.vendor.authUrl'), value('clouds.vendor.caFile')]
  if (authUrl === undefined)
    return ['clouds.vendor.caFile', 'clouds.vendor.region'].flatMap((path) =>
      value(path) === undefined
        ? []
        : [
            {
              path,
              message: `${path} has no effect without clouds.vendor.authUrl; set that, or remove this`,
            },
          ],
    )
  // The pattern of the schema cannot say which ports there are.
  if (typeof authUrl === 'string' && !URL.canParse(authUrl)) {
    const message = `clouds.vendor.authUrl, ${authUrl}, is not a URL; a port is a number up to 65535`
    return [{ path: 'clouds.vendor.authUrl', message }]
  }
  return typeof caFile === 'string' ? checkAuthorities('clouds.vendor.caFile', caFile, onUnseen) : []
}
