import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { asUser } from './host/process.ts'

let host: Edgehostd
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine', wire: false })
  await host.addUser({ name: 'guest' })
})
afterAll(() => host.unplug())

describe('edgehostctl definition', () => {
  it('edgehostctl definition builds, inspects and validates for any user, without the daemon', async () => {
    const packs = [
      ['os', 'edge-native-byoi', '1.0.0'],
      ['k8s', 'edge-k3s', '1.33.3'],
      ['cni', 'cni-calico', '3.28.0'],
    ] as const
    for (const [layer, name, version] of packs) {
      const pack = { name, version, displayName: name, layer, cloudTypes: ['edge-native'] }
      await host.sh('mkdir -p "$1"', `/srv/packs/${layer}`)
      await host.write(`/srv/packs/${layer}/pack.json`, JSON.stringify(pack))
    }
    const profilePacks = packs.map(([layer, name, tag]) => ({
      ...{ name, layer, tag, uid: layer, type: 'spectro' },
      values: 'replicas: {{ .spectro.var.replicas }}\n',
    }))
    const template = { type: 'cluster', cloudType: 'edge-native', packs: profilePacks }
    const spec = { version: '1.0.0', template, variables: [{ name: 'replicas', format: 'number' }] }
    const profile = { metadata: { name: 'shop', uid: '65a0c0ffee0000000000abcd' }, spec }
    await host.write('/srv/profile.json', JSON.stringify(profile))
    const asGuest = (line: string) =>
      host.run(asUser('guest', ['sh', '-c', `cd /tmp && HOME=/nowhere ${line}`]))
    const build =
      'edgehostctl definition build --profile /srv/profile.json --pack /srv/packs/* --output shop.tar.zst'
    const built = await asGuest(build)
    expect(built).toMatchObject({ exitCode: 0 })
    expect(built.stdout).toMatch(/^ *Holds: 1 profile, 3 packs, 6 files/m)
    expect((await asGuest('edgehostctl definition inspect shop.tar.zst')).stdout).toMatch(
      /edge-k3s +1\.33\.3 +yes/,
    )
    expect(await asGuest('edgehostctl definition validate shop.tar.zst')).toMatchObject({ exitCode: 0 })
    await host.write('/srv/profile.json', JSON.stringify(profile).replace('var.replicas', 'var.replica'))
    // It is written all the same, and cannot be used.
    expect(await asGuest(build)).toMatchObject({ exitCode: 1 })
    const refused = await asGuest('edgehostctl definition validate shop.tar.zst')
    expect(refused.exitCode).toBe(1)
    expect(refused.stdout).toMatch(/VariableUndeclared: .*did you mean replicas/)
    const cut = await asGuest(
      'head -c 200 shop.tar.zst > cut.tar.zst; edgehostctl definition inspect cut.tar.zst',
    )
    expect(cut).toMatchObject({ exitCode: 1, stdout: '' })
    expect(cut.stderr).toMatch(/ends too early/)
  })
})
