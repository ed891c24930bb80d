import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Problem } from '../../../src/definition/definition.ts'
import type { ClusterConfigArchiveDetails } from '../../../src/definition/schemas.ts'
import { createCtl, type Ctl } from '../../support/ctl.ts'
import { definitionArchive, type ArchiveWish } from '../../support/definition-archives.ts'
import { uploadFile } from '../../support/definition-upload.ts'
import { authoringProgram } from '../../support/programs.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

let ctl: Ctl
let edge: TestEdge
let token: string
beforeAll(async () => {
  ctl = createCtl()
  copyFileSync(authoringProgram(), join(ctl.home, 'definition.cjs'))
  edge = await createTestEdge()
  token = (await edge.login('alice')).access
})
afterAll(async () => {
  await edge.stop()
  rmSync(ctl.home, { recursive: true })
})

const inValues = 'profiles/u1/profile.json#spec.template.packs[0].values'
const told = (problems: readonly Problem[]) =>
  problems.map(({ code, severity, place }) => `${severity} ${code} ${place}`)
const manifest = (content: string): ArchiveWish => ({
  files: { 'packs/web-shop-1.0/manifests/m.yaml': content },
})

describe('a definition whose pack has', () => {
  it.each<[string, ArchiveWish, string[]]>([
    [
      'a manifest that is a template',
      manifest('{{ if .Values.x }}\na: 1\n{{ else }}\na: [2\n{{ end }}\n'),
      [],
    ],
    ['a scalar that continues at the indent of its key', { values: 'a: "x\ny"#c\nb: [\nc\n]\n' }, []],
    [
      'functions on system macros',
      { values: 'a: "v{{\n  .spectro.system.kubernetes.version | substr 0 4 }}"\n' },
      [],
    ],
    ['trim markers', { values: 'a: x {{- .spectro.system.cluster.uid -}} y\n' }, []],
    ['a default for a missing pack', { values: 'a: "{{ .spectro.pack.k.v | default \\"1\\" }}"\n' }, []],
    [
      'an unknown function',
      { values: 'a: {{ .spectro.system.cluster.name | uper }}\n' },
      [`error MacroFunctionUnknown ${inValues}:1:4`],
    ],
    [
      'an endless result',
      { values: 'a: {{ .spectro.system.clusterprofile.name | repeat 1000000000 }}\n' },
      [`error MacroFunctionFailed ${inValues}:1:4`],
    ],
    [
      'a macro that only the platform knows',
      { values: 'a: "{{ .spectro.macro.region }}"\n' },
      [`warning MacroPlatformOnly ${inValues}:1:5`],
    ],
  ])('a definition whose pack has %s has only the expected problems', async (_name, wish, expected) => {
    const content = definitionArchive(wish)
    const file = join(ctl.home, 'd.tgz')
    writeFileSync(file, content)
    const validated = await ctl.run(['definition', 'validate', file, '-o', 'json'])
    expect(told((JSON.parse(validated.stdout) as { problems: Problem[] }).problems)).toEqual(expected)
    const reply = await uploadFile(edge, token, content)
    if (expected.some((each) => each.startsWith('error'))) {
      expect(reply.statusCode).toBe(400)
      const { details } = reply.json<ErrorReply>()
      expect(told((details as { problems: Problem[] }).problems)).toEqual(expected)
      return
    }
    expect(reply.statusCode, reply.body).toBe(201)
    const shown = await edge.get('/v1/edge-mgmt/clusters/archive/overridden/details', token)
    expect(told(shown.json<ClusterConfigArchiveDetails>().problems ?? [])).toEqual(expected)
  })
})
