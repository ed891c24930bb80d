import { describe, expect, it } from 'vitest'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import {
  definitionOf,
  infrastructurePacks,
  packOf,
  profileOf,
  profilePack,
} from '../../../support/definitions.ts'
import { render } from '../../../support/rendered-values.ts'

const infrastructure = profileOf(infrastructurePacks, [], {
  ...{ uid: 'u0', name: 'ground', version: '3.1.0', type: 'infra' },
})
const addOn = (values: string) => profileOf([profilePack('app', values)], [], { name: 'shop' })
const both = (values: string) => definitionOf([infrastructure, addOn(values)])
const published = [
  ...['cluster.name', 'cluster.uid', 'cluster.kubevip', 'kubernetes.version'],
  ...['user.name', 'user.uid', 'user.email', 'tenant.uid', 'project.name', 'project.uid'],
  ...['clusterprofile.name', 'clusterprofile.uid', 'clusterprofile.version'],
  ...['clusterprofile.infra.name', 'clusterprofile.infra.uid', 'clusterprofile.infra.version'],
  ...['cloudaccount.name', 'cloudaccount.uid', 'cloud.type', 'cloud.region'],
  ...['reverseproxy.server', 'reverseproxy.port', 'reverseproxy.protocol', 'reverseproxy.vhostport'],
]

describe('a system macro', () => {
  it.each(published)('the system macro %s is known', (name) => {
    const problems = checkDefinition(both(`a: "{{ .spectro.system.${name} }}"`))
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it.each<[string, string]>([
    ['clusterprofile.name', 'shop'],
    ['clusterprofile.uid', 'u1'],
    ['clusterprofile.version', '1.0.0'],
    ['clusterprofile.infra.name', 'ground'],
    ['clusterprofile.infra.uid', 'u0'],
    ['clusterprofile.infra.version', '3.1.0'],
    ['cloud.type', 'edge-native'],
    ['cluster.name', 'c1'],
    ['cluster.uid', 'u9'],
    ['cluster.kubevip', '192.0.2.9'],
    ['kubernetes.version', '1.33.3'],
  ])('the system macro %s is answered by this host', (name, expected) => {
    const facts = {
      ...{ clusterName: 'c1', clusterUid: 'u9' },
      ...{ clusterKubevip: '192.0.2.9', kubernetesVersion: '1.33.3' },
    }
    const { texts, problems } = render(both(`a: "{{ .spectro.system.${name} }}"`), { facts })
    expect(texts.at(-1)?.content).toBe(`a: "${expected}"`)
    expect(problems).toEqual([])
  })

  it('a system macro of the infrastructure profile has no value without such a profile', () => {
    const alone = definitionOf([addOn('a: "{{ .spectro.system.clusterprofile.infra.name }}"')])
    expect(checkDefinition(alone)).toEqual([])
    expect(render(alone).problems.map(({ code }) => code)).toEqual(['MacroUnset'])
  })

  it('an unknown system macro is an error with a suggestion', () => {
    const [problem] = checkDefinition(both('a: "{{ .spectro.system.project.nam }}"'))
    expect(problem).toMatchObject({ code: 'MacroSystemUnknown', severity: 'error' })
    expect(problem?.message).toContain('did you mean project.name?')
  })
})

describe('a macro that only the platform knows', () => {
  it.each<[string, string]>([
    ['system.reverseproxy.server', 'only the platform knows reverseproxy.server'],
    ['macro.region', 'region is a macro of a project or tenant, which only the platform knows'],
  ])('a macro that only the platform knows is a warning and stays as it is: .spectro.%s', (name, message) => {
    const values = `a: "{{ .spectro.${name} }}"`
    const expected = { code: 'MacroPlatformOnly', severity: 'warning', message }
    expect(checkDefinition(both(values))).toMatchObject([expected])
    const { texts, problems } = render(both(values))
    expect(texts.at(-1)?.content).toBe(values)
    expect(problems).toMatchObject([expected])
  })

  it.each(['os', 'k8s', 'cni'])(
    'a macro that only the platform knows is an error in the layer %s',
    (layer) => {
      const pack = infrastructurePacks.find((each) => each.layer === layer)!
      const content = 'a: "{{ .spectro.macro.region }}" # {{ .spectro.macro.region }}'
      const packs = [
        { ...pack, values: content, manifests: [{ name: 'm', content }] },
        ...infrastructurePacks.filter((each) => each !== pack),
      ]
      const problems = checkDefinition(definitionOf([{ ...infrastructure, packs }]))
      expect(problems.map(({ code, severity }) => `${code} ${severity}`)).toEqual(
        ['error', 'warning', 'error', 'warning'].map((severity) => `MacroPlatformOnly ${severity}`),
      )
    },
  )

  it('the layer in the profile decides the severity, not that of the folder', () => {
    const packs = infrastructurePacks.map((pack) => ({ ...pack, values: '' }))
    const folders = packs.map(({ name, tag }) =>
      packOf(name, { version: tag, values: name === 'edge-k3s' ? 'a: "{{ .spectro.macro.x }}"' : 'a: 1' }),
    )
    const [problem] = checkDefinition(definitionOf([{ ...infrastructure, packs }], folders))
    expect(problem).toMatchObject({ code: 'MacroPlatformOnly', severity: 'error' })
  })
})
