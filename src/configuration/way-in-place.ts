// The way of outgoing calls of this host, by the files that are in place: for programs of root beside the daemon.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isExempt, type HostWay } from '../outgoing/proxy.ts'
import { authorityFolder, environmentFile } from './placement.ts'

/** Lines of the file of proxies, as `environmentOf` writes them. */
const assignment = /^(HTTP_PROXY|HTTPS_PROXY|NO_PROXY)="([^"]*)"$/gm

/**
 * Reads it; root alone may.
 * @param places other ones, for tests
 */
export async function readHostWay(
  places = { environment: environmentFile, authorities: authorityFolder },
): Promise<HostWay> {
  const text = await readFile(places.environment, 'utf8').catch(orNothing)
  const values = new Map([...text.matchAll(assignment)].map(([, name = '', value = '']) => [name, value]))
  const exemptions = (values.get('NO_PROXY') ?? '').split(',').filter(Boolean)
  const names = (await readdir(places.authorities).catch(() => [])).filter((name) =>
    /^edgehostd-.+\.crt$/.test(name),
  )
  const authorities = await Promise.all(
    names.map((name) => readFile(join(places.authorities, name), 'utf8').catch(orNothing)),
  )
  return {
    proxyFor(url) {
      const proxy = values.get(url.startsWith('http:') ? 'HTTP_PROXY' : 'HTTPS_PROXY')
      return proxy === undefined || isExempt(url, exemptions) ? undefined : proxy
    },
    authorities: () => authorities.filter((pem) => pem !== ''),
  }
}

function orNothing(error: unknown): string {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
  throw error
}
