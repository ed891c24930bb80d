// As root, `node test/e2e/cluster/try.ts [VERSION [NEXT]]`: boots a host with the package of this checkout, and with the content and the
// definition of a cluster, says how to look at it, and keeps it until Ctrl+C. With NEXT it makes the cluster, and then wants that version.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kitVersions, type KitVersion } from '../../support/kubernetes-kit.ts'
import { sweep } from '../host/boot.ts'
import { makePackage } from '../host/package.ts'
import { clusterClient } from './cluster-client.ts'
import { bootClusterHost, changeVersion, chief, password } from './cluster-host.ts'

const version = (process.argv[2] ?? kitVersions[0]) as KitVersion
if (!kitVersions.includes(version)) throw new Error(`versions: ${kitVersions.join(', ')}`)
const next = process.argv[3] as KitVersion | undefined
if (next !== undefined && !kitVersions.includes(next)) throw new Error(`versions: ${kitVersions.join(', ')}`)
process.env.ARCHITECTURES ??= 'amd64'
await sweep()
const plant = await bootClusterHost({ version, deb: await makePackage() })
const { host, token, configuration } = plant
const body = join(host.folder, 'cluster.json')
await writeFile(body, JSON.stringify(configuration(), undefined, 2))
await writeFile(join(host.folder, 'token'), token)
await host.write('/root/cluster.json', JSON.stringify(configuration(), undefined, 2))

const curl = [
  ...[`nsenter -t ${host.clientNamespace()} -n curl --cacert ${host.cacert}`],
  ...[`-H "Authorization: $(cat ${host.folder}/token)"`, "-H 'Content-Type: application/json'"],
].join(' ')
const show = () => {
  console.log(`
A host is up. Account: ${chief}, ${password}
Shell: nsenter -t ${host.leader} -a bash
API: ${curl} -d @${body} https://10.77.0.1:5080/v1/edge-mgmt/cluster
The same body is on the host: edgehostctl api post /v1/edge-mgmt/cluster --data /root/cluster.json
Power cut and boot: kill -USR1 ${process.pid}
End: kill ${process.pid}, or Ctrl+C
Console: ${host.folder}/console
`)
}
show()
if (next !== undefined) {
  const cluster = clusterClient(plant)
  await cluster.create()
  await cluster.reach('Running')
  const { status, text } = await changeVersion(plant, next)
  console.log(`PUT /v1/edge-mgmt/cluster/profiles: ${status} ${text}`)
}
process.on('SIGUSR1', () => void host.cutPower().then(show))
await new Promise<void>((resolve) => {
  process.once('SIGINT', () => resolve())
  process.once('SIGTERM', () => resolve())
  // Keeps the process alive.
  setInterval(() => undefined, 60_000)
})
await host.unplug()
process.exit(0)
