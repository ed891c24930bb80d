import { X509Certificate } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { playDownload, tenantUid, type PlayedDelivery } from './played-download.ts'

/**
 * A platform for one host over TLS, as small as it can be: it lets every host in, announces what it has with each heartbeat, and keeps what the
 * host reports of its cluster, the newest of each kind.
 */
export async function playPlatform(first: PlayedDelivery) {
  const played = await playDownload(first)
  const reports = new Map<string, unknown>()
  const counts = { heartbeats: 0, logins: 0 }
  /** What is announced; by default what there is. */
  const said = { header: undefined as string | undefined }
  played.others = (request, reply) => {
    const { url = '' } = request
    const answer = (status: number, body?: object, headers = {}) =>
      reply
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(body && JSON.stringify(body))
    const act = async () => {
      const body = JSON.parse((await text(request)) || '{}') as { readonly edgeAuthToken?: string }
      if (url.startsWith('/v1/edgehosts/register'))
        return answer(200, {
          metadata: { uid: '01890000-0000-7000-8000-000000000001', name: 'edge-test' },
          aclmeta: { projectUid: '', tenantUid },
        })
      if (url.endsWith('/edge/login')) {
        if (body.edgeAuthToken === undefined)
          return answer(401, { code: 'LoginChallenge', message: 'sign it', details: { nonce: 'n' } })
        counts.logins += 1
        return answer(200, { Authorization: 'token-of-the-host', generation: counts.logins + 1_000 })
      }
      if (url.endsWith('/health')) {
        counts.heartbeats += 1
        return answer(204, undefined, { 'edgehost-wanted': said.header ?? played.delivery.header })
      }
      const [, name] = /^\/v1\/spectroclusters\/[^/]+\/(.+)$/.exec(url) ?? []
      if (name !== undefined) reports.set(name, body)
      return url.startsWith('/v1/events/') ? answer(201, []) : answer(204)
    }
    act().catch(() => reply.destroy())
  }
  const fingerprint = new X509Certificate(played.ca).fingerprint256
  return {
    ...{ played, reports, counts, said },
    flags: [`--platform.url=${played.url}`, `--platform.fingerprint=${fingerprint}`],
  }
}
