import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask, beat, by, clusterWorld, create, problemCodes } from '../../support/cluster-world.ts'
import { clusterEntity, clusterProfile, layerPack } from '../../support/platform-clusters.ts'
import { tarOf, uploadPack } from '../../support/platform-packs.ts'
import type { PlayedEdgeHost } from '../../support/played-edge-host.ts'

const world = clusterWorld()

describe('a cluster that cannot be', () => {
  const validate = (entity: object) => ask('POST', '/v1/spectroclusters/edge-native/validate', entity)

  it('is told all problems at once, by the validation and by the creation', async () => {
    const host = await world.joined()
    const values = 'user: "{{ .spectro.var.UNKNOWN }}"\n'
    const wrong = clusterProfile('wrong', '1.0.0', { values })
    wrong.spec.template.packs[3]!.tag = '9.9.9'
    const uid = await world.imported(wrong)
    const entity = clusterEntity(host.uid, uid, {
      ...{
        name: 'Not a name',
        variables: [
          { name: 'USER', value: 'UPPER' },
          { name: 'NOBODY', value: '1' },
        ],
      },
      cloudConfig: { ntpServers: ['a b'], sshKeys: ['no key'] },
      poolConfig: { machinePoolProperties: { archType: 'arm64' }, isControlPlane: false },
    })
    const found = await validate(entity)
    expect(found.status).toBe(200)
    expect(found.json).toMatchObject({ isPossible: false })
    expect(problemCodes(found).sort()).toEqual(
      [
        ...['FieldInvalid', 'FieldInvalid', 'FieldInvalid', 'FieldInvalid', 'FieldInvalid'],
        ...['VariableInvalid', 'VariableInvalid', 'PackMissing', 'VariableUndeclared'],
      ].sort(),
    )
    const { profiles, machinePools } = found.json as unknown as {
      profiles: { uid: string; packs: { results: { name: string }[] } }[]
      machinePools: { results: { errors: object[] }[] }
    }
    expect(profiles[0]?.uid).toBe(uid)
    expect(profiles[0]?.packs.results.map(({ name }) => name)).toContain('web')
    expect(machinePools.results[0]?.errors).toHaveLength(2)
    // No path of this machine.
    expect(found.body).not.toContain(world.platform().stateDirectory)
    const refused = await ask('POST', '/v1/spectroclusters/edge-native', entity)
    expect([refused.status, refused.json?.code]).toEqual([400, 'ClusterInvalid'])
    expect(problemCodes(refused)).toEqual(problemCodes(found))
    expect(await beat(host)).toBeUndefined()
    expect(readdirSync(join(world.platform().stateDirectory, 'clusters/staging'))).toEqual([])
  })

  it.each<[string, (spec: ReturnType<typeof clusterEntity>['spec']) => void]>([
    ['two hosts', ({ machinepoolconfig: [pool] }) => pool?.cloudConfig.edgeHosts.push({ hostUid: 'b' })],
    ['two pools', ({ machinepoolconfig: pools }) => pools.push(pools[0]!)],
    ['no pool', ({ machinepoolconfig: pools }) => pools.splice(0)],
    ['an unknown host', ({ machinepoolconfig: [pool] }) => (pool!.cloudConfig.edgeHosts[0]!.hostUid = 'x')],
  ])('is told all problems at once also with %s, of each entry of a list', async (_, change) => {
    const host = await world.joined()
    const entity = clusterEntity(host.uid, world.profileUid(), {
      name: 'UPPER bad!',
      cloudConfig: {
        ntpServers: ['bad host!', 'time.example', '-a', 'b_'],
        sshKeys: ['nokey', 'none'],
        controlPlaneEndpoint: { host: 'x', type: 'DNS', ddnsSearchDomain: 'example' },
      },
      poolConfig: {
        machinePoolProperties: { archType: 'amd64' },
        additionalLabels: { '/': 'a', 'kubernetes.io/os': 'b' },
        taints: [{ key: '' }, { key: 'a', effect: 'NoSchedule' }, { key: 'b', effect: '' }],
      },
    })
    change(entity.spec)
    const pathsOf = (problems: readonly { path?: string; severity: string }[]) =>
      problems
        .filter(({ severity }) => severity === 'error')
        .map(({ path = '' }) => path)
        .filter((path) => !path.includes('edgeHosts'))
    const hasPool = entity.spec.machinepoolconfig.length > 0
    const { problems } = (await validate(entity)).json as unknown as { problems: { severity: string }[] }
    const pool = 'spec.machinepoolconfig[0].poolConfig'
    expect(pathsOf(problems).sort()).toEqual(
      [
        ...['metadata.name', 'spec.cloudConfig.ntpServers[0]', 'spec.cloudConfig.ntpServers[2]'],
        ...['spec.cloudConfig.ntpServers[3]', 'spec.cloudConfig.sshKeys[0]', 'spec.cloudConfig.sshKeys[1]'],
        ...['host', 'type', 'ddnsSearchDomain'].map(
          (each) => `spec.cloudConfig.controlPlaneEndpoint.${each}`,
        ),
        ...(hasPool
          ? [
              ...['/', 'kubernetes.io/os'].map((key) => `${pool}.additionalLabels["${key}"]`),
              ...[`${pool}.taints[0].key`, `${pool}.taints[2].effect`],
            ]
          : []),
      ].sort(),
    )
    expect(JSON.stringify(problems)).toMatch(/NeedsOneHost|HostNotFound/)
  })

  it.each([
    ['999.1.1.1', 'is not an IP address'],
    ['plant.example', 'is not an IP address'],
    ['127.0.0.1', 'is not an address that other hosts can reach'],
    ['224.0.0.1', 'is not an address that other hosts can reach'],
  ])('is told that the address of the control plane %s %s', async (address, reason) => {
    const host = await world.joined()
    const entity = clusterEntity(host.uid, world.profileUid(), {
      cloudConfig: { controlPlaneEndpoint: { host: address, type: 'VIP' } },
    })
    expect((await validate(entity)).json).toMatchObject({
      isPossible: false,
      problems: expect.arrayContaining([
        {
          ...{ code: 'EndpointInvalid', severity: 'error' },
          path: 'spec.cloudConfig.controlPlaneEndpoint.host',
          message: expect.stringContaining(`"${address}" ${reason}`) as string,
        },
      ]) as object[],
    })
    expect((await ask('POST', '/v1/spectroclusters/edge-native', entity)).status).toBe(400)
  })

  it.each<[string, string, (entity: ReturnType<typeof clusterEntity>, host: PlayedEdgeHost) => void]>([
    [
      'two hosts',
      'NeedsOneHost',
      ({ spec }) => spec.machinepoolconfig[0]?.cloudConfig.edgeHosts.push({ hostUid: 'b' }),
    ],
    ['no host', 'NeedsOneHost', ({ spec }) => spec.machinepoolconfig.splice(0)],
    [
      'an unknown host',
      'HostNotFound',
      ({ spec }) => (spec.machinepoolconfig[0]!.cloudConfig.edgeHosts[0]!.hostUid = 'x'),
    ],
    ['no profile', 'ProfileMissing', ({ spec }) => spec.profiles.splice(0)],
    ['an unknown profile', 'ProfileNotFound', ({ spec }) => (spec.profiles[0]!.uid = 'x')],
    ['a profile twice', 'ProfileTwice', ({ spec }) => spec.profiles.push(spec.profiles[0]!)],
    [
      'a profile to replace',
      'NothingToReplace',
      ({ spec }) => Object.assign(spec.profiles[0]!, { replaceWithProfile: 'x' }),
    ],
    [
      'values of packs',
      'PackValuesGiven',
      ({ spec }) => Object.assign(spec.profiles[0]!, { packValues: [{ name: 'web' }] }),
    ],
  ])('with %s is refused: %s', async (_, code, change) => {
    const host = await world.joined()
    const entity = clusterEntity(host.uid, world.profileUid())
    change(entity, host)
    expect(problemCodes(await validate(entity))).toContain(code)
    const refused = await ask('POST', '/v1/spectroclusters/edge-native', entity)
    expect(refused.status).toBe(400)
    expect(problemCodes(refused)).toContain(code)
  })

  it('on a host with a cluster, or with a name that there is, is refused', async () => {
    const [host, free] = [await world.joined(), await world.joined()]
    await create(host, { name: 'first' })
    expect(problemCodes(await validate(clusterEntity(host.uid, world.profileUid())))).toEqual(['HostInUse'])
    expect(
      problemCodes(await validate(clusterEntity(free.uid, world.profileUid(), { name: 'first' }))),
    ).toEqual(['ClusterExists'])
  })

  it('without infrastructure is refused', async () => {
    const profile = clusterProfile('addon-only')
    profile.spec.template = {
      ...profile.spec.template,
      ...{ type: 'add-on', packs: profile.spec.template.packs.slice(3) },
    }
    const uid = await world.imported(profile)
    const host = await world.joined()
    expect(problemCodes(await validate(clusterEntity(host.uid, uid)))).toEqual(['InfrastructureMissing'])
  })

  it('is one of two that are created at once on one host', async () => {
    const host = await world.joined()
    const replies = await Promise.all(
      ['a', 'b'].map((name) =>
        ask(
          'POST',
          '/v1/spectroclusters/edge-native',
          clusterEntity(host.uid, world.profileUid(), { name: `race-${name}` }),
        ),
      ),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409])
  })
})

describe('a change that the host would refuse', () => {
  it.each([
    ['an older Kubernetes', 'k8s', 'edge-k8s', '1.33.9', 'VersionSkew'],
    ['a Kubernetes that leaves a minor version out', 'k8s', 'edge-k8s', '1.36.0', 'VersionSkew'],
    ['Kubernetes of another pack', 'k8s', 'other-k8s', '1.34.4', 'CannotChange'],
    ['the network of another pack', 'cni', 'other-cni', '1.0.0', 'CannotChange'],
  ])('%s, is refused when it is asked for', async (_, layer, name, tag, code) => {
    const host = await world.joined()
    const uid = await create(host)
    await uploadPack(world.platform(), tarOf(layerPack(name, tag, layer)), world.admin())
    const profile = clusterProfile(`to-${name}-${tag}`)
    profile.spec.template.packs = profile.spec.template.packs.map((pack) =>
      pack.layer === layer ? { ...pack, name, tag } : pack,
    )
    const profileUid = await world.imported(profile)
    const url = `/v1/spectroclusters/${uid}/profiles`
    const packs = [
      { name: 'edge-k8s', version: '1.34.4' },
      { name: 'cni', version: '1.0.0' },
    ]
    expect((await ask('PATCH', `/v1/spectroclusters/${uid}/packs/status`, { packs }, by(host))).status).toBe(
      204,
    )
    const refused = await ask('PUT', url, { profiles: [{ uid: profileUid }] })
    expect([refused.status, problemCodes(refused)]).toEqual([400, [code]])
    expect(refused.body).not.toContain('/v1/edge-mgmt')
  })

  it('is not refused where the host runs an older one than was wanted', async () => {
    const host = await world.joined()
    const uid = await create(host)
    await uploadPack(world.platform(), tarOf(layerPack('edge-k8s', '1.33.8', 'k8s')), world.admin())
    const profile = clusterProfile('back-again')
    profile.spec.template.packs[1]!.tag = '1.33.8'
    const profileUid = await world.imported(profile)
    // It has refused the first number, and nothing is known of what it runs.
    const reply = await ask('PUT', `/v1/spectroclusters/${uid}/profiles`, { profiles: [{ uid: profileUid }] })
    expect([reply.status, reply.body]).toEqual([204, ''])
  })
})

describe('what the pre-flight of the host would refuse by what it has reported', () => {
  const kubeadm = (config: object) => `cluster:\n  config: ${JSON.stringify(JSON.stringify(config))}\n`
  async function profileWith(config: object, name: string) {
    const profile = clusterProfile(name)
    profile.spec.template.packs[1]!.values = kubeadm(config)
    return world.imported(profile)
  }
  const facts = async (host: PlayedEdgeHost, device: object, hostAddress = '192.0.2.7') =>
    expect(
      (
        await ask(
          'PUT',
          `/v1/edgehosts/${host.uid}`,
          {
            spec: {
              device: { archType: 'amd64', ...device },
              service: { name: 'edgehostd' },
              host: { hostAddress },
            },
          },
          by(host),
        )
      ).status,
    ).toBe(204)
  const validate = (entity: object) => ask('POST', '/v1/spectroclusters/edge-native/validate', entity)

  it.each([
    ['cores', { cpu: { cores: 1 } }, 'TooFewCores'],
    ['memory', { memory: { sizeInMB: 1_699 } }, 'MemoryTooSmall'],
    ['kernel', { os: { kernelVersion: '4.18.0-553.el8.x86_64' } }, 'KernelUnsupported'],
  ])('too little: %s', async (_, device, code) => {
    const host = await world.joined()
    await facts(host, device)
    const entity = clusterEntity(host.uid, world.profileUid())
    const found = await validate(entity)
    expect([problemCodes(found), found.body]).toEqual([[code], expect.not.stringContaining('this host')])
    const refused = await ask('POST', '/v1/spectroclusters/edge-native', entity)
    expect([refused.status, problemCodes(refused)]).toEqual([400, [code]])
  })

  it('a check that the pack has kubeadm ignore is a warning, and what is enough is nothing', async () => {
    const host = await world.joined()
    await facts(host, {
      cpu: { cores: 1 },
      memory: { sizeInMB: 1_700 },
      os: { kernelVersion: '6.1.0-18-amd64' },
    })
    const ignoring = { initConfiguration: { nodeRegistration: { ignorePreflightErrors: ['NumCPU'] } } }
    const uid = await profileWith(ignoring, 'ignoring')
    const { json } = await validate(clusterEntity(host.uid, uid))
    const problems = json?.problems as unknown as { code: string; severity: string }[]
    expect(problems.filter(({ code }) => code !== 'HostUnhealthy')).toMatchObject([
      { code: 'TooFewCores', severity: 'warning' },
    ])
  })

  it('networks that overlap each other, or that of the host', async () => {
    const host = await world.joined()
    const nics = [{ nicName: 'eth0', ip: '192.0.2.7', subnet: '255.255.255.0', isDefault: true }]
    await facts(host, { nics })
    const networking = { podSubnet: '192.0.2.128/25', serviceSubnet: '192.0.0.0/16' }
    const uid = await profileWith({ clusterConfiguration: { networking } }, 'overlapping')
    const found = await validate(clusterEntity(host.uid, uid))
    expect(new Set(problemCodes(found))).toEqual(new Set(['NetworkOverlaps']))
    expect(found.body).toContain('at the interface eth0')
  })

  it('Kubernetes of an unknown pack, and one that is too old', async () => {
    const host = await world.joined()
    for (const [name, tag] of [
      ['strange-k8s', '1.34.4'],
      ['edge-k8s', '1.30.9'],
    ] as const)
      await uploadPack(world.platform(), tarOf(layerPack(name, tag, 'k8s')), world.admin())
    const codes = async (name: string, tag: string) => {
      const profile = clusterProfile(`${name}-${tag}`)
      Object.assign(profile.spec.template.packs[1]!, { name, tag })
      return problemCodes(await validate(clusterEntity(host.uid, await world.imported(profile))))
    }
    expect(await codes('strange-k8s', '1.34.4')).toEqual(['KubernetesUnknown'])
    expect(await codes('edge-k8s', '1.30.9')).toEqual(['KubernetesVersionUnsupported'])
  })

  it('a setting of kubeadm that a cluster keeps for its life, once the host has applied it', async () => {
    const host = await world.joined()
    const networking = (podSubnet: string) => ({ clusterConfiguration: { networking: { podSubnet } } })
    const first = await profileWith(networking('10.244.0.0/16'), 'pods-244')
    const second = await profileWith(networking('10.245.0.0/16'), 'pods-245')
    const uid = await create(host, {}, first)
    const url = `/v1/spectroclusters/${uid}/profiles`
    const change = (profileUid: string) => ask('PUT', url, { profiles: [{ uid: profileUid }] })
    // The host may not have begun: its first cluster may be either.
    expect((await change(second)).status).toBe(204)
    const applied = { type: 'Wanted', status: 'True', reason: 'Applied', observedGeneration: 2 }
    expect(
      (await ask('PATCH', `/v1/spectroclusters/${uid}/status/conditions`, [applied], by(host))).status,
    ).toBe(204)
    const refused = await change(first)
    expect([refused.status, problemCodes(refused)]).toEqual([400, ['CannotChange']])
    expect(refused.body).toContain('networking.podSubnet of the pack edge-k8s')
    expect((await change(second)).status).toBe(204)
  })
})
