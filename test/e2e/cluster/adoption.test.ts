import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { installPackage } from '../host/edgehostd.ts'
import { clusterClient, type ClusterClient } from './cluster-client.ts'
import { bootClusterHost, chief, password, plantSettings, type ClusterHost } from './cluster-host.ts'
import { expectRestored, readHostState, type HostState } from './host-state.ts'
import { expectWorks } from './workload.ts'

let plant: ClusterHost | undefined
const host = () => plant!.host
let cluster: ClusterClient
let before: HostState
let uid: string

/** With the sessions all tokens were lost. */
async function logInAgain(): Promise<void> {
  const { token } = await host().openSession(chief, password)
  plant = { ...plant!, token }
  cluster = clusterClient(plant)
}

const adoptions = async () => (await cluster.ownEvents()).filter(({ reason }) => reason === 'Adopted')
const containers = () => host().sh('pgrep --full "^/pause" | sort | tr "\\n" " "')

describe.skipIf(isKitMissing())(
  'a cluster that the daemon does not know any more',
  { timeout: 600_000 },
  () => {
    beforeAll(async () => {
      plant = await bootClusterHost()
      cluster = clusterClient(plant)
      before = await readHostState(host())
      uid = await cluster.create()
      await cluster.reach('Running')
    })
    afterAll(() => plant?.host.unplug())

    it('after the database was lost the cluster is adopted, and becomes Running with the containers that it had', async () => {
      const running = await containers()
      expect(running).not.toBe('')
      await host().sh(
        'systemctl stop edgehostd; rm /var/lib/edgehostd/edgehostd.db*; systemctl start edgehostd',
      )
      await logInAgain()
      const { metadata } = await cluster.reach('Running')
      expect(metadata.id).toBe(uid)
      expect(await adoptions()).toMatchObject([{ severity: 'Warning', message: /^the database was lost/ }])
      expect((await host().log()).map(({ msg }) => msg)).toContainEqual(
        expect.stringMatching(/^the database was lost; the cluster plant/),
      )
      expect(await containers()).toBe(running)
      await expectWorks(plant!, cluster)
    })

    it('a purge of the package leaves the cluster running and its folder whole, and says so', async () => {
      const running = await containers()
      const purged = await host().run(['dpkg', '--purge', 'edgehostd'])
      expect(purged).toMatchObject({ exitCode: 0 })
      expect(purged.stderr).toContain('this host still has a Kubernetes cluster')
      expect((await host().output(['ls', '/var/lib/edgehostd'])).trim()).toBe('cluster')
      expect(await containers()).toBe(running)
      expect(await cluster.kubectl('get', 'nodes')).toMatch(/ Ready /)
    })

    it('edgehostd that is installed again adopts it without its secret, and a deletion leaves the host as before', async () => {
      await installPackage(host(), await readFile(inject('deb')))
      await host().configure('plant', plantSettings)
      await host().trust()
      await logInAgain()
      expect(await adoptions()).toMatchObject([{ message: /sensitive values cannot be told from others/ }])
      await cluster.remove()
      await expectRestored(host(), before)
      expect(await host().sh('ls /var/lib/edgehostd/cluster')).not.toContain(uid)
    })
  },
)
