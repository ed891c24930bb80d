import { isIP } from 'node:net'
import { withoutEndSlashes } from '../base/end-slashes.ts'
import { isRecord } from '../base/json.ts'

/** How an API server is reached, and as whom. */
export interface ApiAccess {
  /** Origin and path, without a slash at its end. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly cert: string
  readonly key: string
  /** Name that the certificate of the server must have, where it is not the one in `server`. */
  readonly serverName?: string
}

/**
 * Reads the current context of a kubeconfig that has all certificates in itself, as kubeadm, k3s and rke2 write it for administrators.
 * Source: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
 * @throws Error what is missing
 */
export async function parseKubeconfig(text: string): Promise<ApiAccess> {
  // Loaded here, since a host without a cluster does not need it.
  const { parseDocument } = await import('yaml')
  // The library would compare each key with every other one.
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'error', uniqueKeys: false })
  const [problem] = document.errors
  if (problem !== undefined) throw new Error(`the kubeconfig is not YAML: ${problem.message}`)
  const config: unknown = document.toJS()
  if (!isRecord(config)) throw new Error('the kubeconfig is not a mapping')
  const context = entry(config, 'contexts', 'context', config['current-context'])
  const cluster = entry(config, 'clusters', 'cluster', context.cluster)
  const user = entry(config, 'users', 'user', context.user)
  const serverName = cluster['tls-server-name']
  return {
    server: serverOf(cluster.server),
    ca: pem(cluster, 'certificate-authority-data'),
    cert: pem(user, 'client-certificate-data'),
    key: pem(user, 'client-key-data'),
    // RFC 6066: an address is no server name.
    ...(typeof serverName === 'string' && serverName !== '' && isIP(serverName) === 0 ? { serverName } : {}),
  }
}

type Fields = Readonly<Record<string, unknown>>

function entry(config: Fields, list: string, field: string, name: unknown): Fields {
  const entries: readonly unknown[] = Array.isArray(config[list]) ? config[list] : []
  const found = entries.filter(isRecord).find((each) => each.name === name)?.[field]
  if (typeof name !== 'string' || !isRecord(found))
    throw new Error(`the kubeconfig has no entry of ${list} with the name ${JSON.stringify(name ?? '')}`)
  return found
}

function serverOf(server: unknown): string {
  const url = typeof server === 'string' ? URL.parse(server) : null
  if (url?.protocol !== 'https:') throw new Error('the server of the kubeconfig is not an https address')
  return withoutEndSlashes(url.origin + url.pathname)
}

function pem(fields: Fields, name: string): string {
  const value = fields[name]
  const text = typeof value === 'string' ? Buffer.from(value, 'base64').toString('latin1') : ''
  if (!text.includes('-----BEGIN ')) throw new Error(`the kubeconfig has no PEM in ${name}`)
  return text
}
