import { readFile } from 'node:fs/promises'
import { describe, expect, inject, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { installPackage } from '../host/edgehostd.ts'
import { bootForTests } from './boot-for-tests.ts'
import { plantSettings } from './cluster-host.ts'
import { expectWorks } from './workload.ts'

const plant = bootForTests({ isRunning: true })
let uid: string | undefined

const adoptions = async () => (await plant.cluster.ownEvents()).filter(({ reason }) => reason === 'Adopted')
const containers = () => plant.host.sh('pgrep --full "^/pause" | sort | tr "\\n" " "')

describe.skipIf(isKitMissing())(
  'a cluster that the daemon does not know any more',
  { timeout: 600_000 },
  () => {
    it('after the database was lost the cluster is adopted, and becomes Running with the containers that it had', async () => {
      uid = (await plant.cluster.details())!.metadata.id
      const running = await containers()
      expect(running).not.toBe('')
      await plant.host.sh(
        'systemctl stop edgehostd; rm /var/lib/edgehostd/edgehostd.db*; systemctl start edgehostd',
      )
      await plant.logInAgain()
      const { metadata } = await plant.cluster.reach('Running')
      expect(metadata.id).toBe(uid)
      expect(await adoptions()).toMatchObject([{ severity: 'Warning', message: /^the database was lost/ }])
      expect((await plant.host.log()).map(({ msg }) => msg)).toContainEqual(
        expect.stringMatching(/^the database was lost; the cluster plant/),
      )
      expect(await containers()).toBe(running)
      await expectWorks(plant, plant.cluster)
    })

    it('a purge of the package leaves the cluster running and its folder whole, and says so', async () => {
      const running = await containers()
      const purged = await plant.host.run(['dpkg', '--purge', 'edgehostd'])
      expect(purged).toMatchObject({ exitCode: 0 })
      expect(purged.stderr).toContain('this host still has a Kubernetes cluster')
      expect((await plant.host.output(['ls', '/var/lib/edgehostd'])).trim()).toBe('cluster')
      expect(await containers()).toBe(running)
      expect(await plant.cluster.kubectl('get', 'nodes')).toMatch(/ Ready /)
    })

    it('edgehostd that is installed again adopts it without its secret, and a deletion leaves the host as before', async () => {
      await installPackage(plant.host, await readFile(inject('deb')))
      await plant.host.configure('plant', plantSettings)
      await plant.host.trust()
      await plant.logInAgain()
      expect(await adoptions()).toMatchObject([{ message: /sensitive values cannot be told from others/ }])
      await plant.cluster.remove()
      await plant.expectRestored()
      expect(await plant.host.sh('ls /var/lib/edgehostd/cluster')).not.toContain(uid)
    })
  },
)
