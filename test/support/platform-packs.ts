import { randomUUID } from 'node:crypto'
import { formOf } from '../../src/ctl/request-body.ts'
import type { createTestPlatform } from './test-platform.ts'
import { rawTar, type RawMember } from './tar-bytes.ts'

type TestPlatform = Awaited<ReturnType<typeof createTestPlatform>>
type Headers = Readonly<Record<string, string>>

/** Files of a pack that is as small as one can be, by their paths in its folder. */
export const smallPack = (
  name = 'web',
  version = '1.0.0',
  files: Readonly<Record<string, string | Buffer>> = {},
): Readonly<Record<string, string | Buffer>> => ({
  'pack.json': JSON.stringify({
    name,
    version,
    layer: 'addon',
    displayName: `The ${name}`,
    cloudTypes: ['all'],
  }),
  'values.yaml': 'pack:\n  namespace: web\n',
  ...files,
})

/** A tar of files, below a folder if one is named. */
export const tarOf = (files: Readonly<Record<string, string | Buffer>>, folder = ''): Buffer =>
  rawTar(
    Object.entries(files).map(([path, content]): RawMember => ({
      name: folder === '' ? path : `${folder}/${path}`,
      content,
    })),
  )

/** The body and the header of an upload of a pack. */
export function packUpload(archive: Buffer) {
  const { type, body } = formOf([{ name: 'uploadFile', fileName: 'pack.tar', content: archive }])
  return { payload: body, headers: { 'content-type': type } }
}

/** Uploads a pack. */
export async function uploadPack({ app }: Pick<TestPlatform, 'app'>, archive: Buffer, headers: Headers) {
  const upload = packUpload(archive)
  return app.inject({
    ...{ method: 'POST', url: '/v1/packs', payload: upload.payload },
    headers: { ...headers, ...upload.headers },
  })
}

/** Imports a profile as it is. */
export async function importProfile(
  { app }: Pick<TestPlatform, 'app'>,
  text: string | Buffer,
  headers: Headers,
  { publish = false, type = 'application/json' }: { publish?: boolean; type?: string } = {},
) {
  const url = `/v1/clusterprofiles/import?publish=${publish}`
  return app.inject({ method: 'POST', url, payload: text, headers: { ...headers, 'content-type': type } })
}

/** A profile with one pack and two variables, one of them secret. */
export const smallProfile = (name = 'shop', version = '1.0.0', secret = 'hunter-of-two') => ({
  metadata: {
    ...{ name, uid: 'u-of-elsewhere', description: 'of a test', labels: { hall: '3' } },
    annotations: { 'example.com/owner': 'line 4' },
    creationTimestamp: '2024-05-01T10:00:00Z',
  },
  spec: {
    version,
    template: {
      ...{ type: 'add-on', cloudType: 'edge-native' },
      packs: [
        {
          ...{ name: 'web', layer: 'addon', tag: '1.0.0', type: 'spectro', uid: 'p1' },
          values: `password: ${secret}\nuser: '{{ .spectro.var.USER }}'\n`,
          manifests: [{ name: 'notes', content: 'kind: ConfigMap\n' }],
        },
      ],
    },
    variables: [
      { name: 'USER', defaultValue: 'paul', unknownField: 7 },
      { name: 'PASSWORD', isSensitive: true, defaultValue: secret },
    ],
  },
})

const uidOf = ({ statusCode, body }: { readonly statusCode: number; readonly body: string }): string => {
  if (statusCode !== 201) throw new Error(body)
  return (JSON.parse(body) as { uid: string }).uid
}

/** Uploads a pack with a name of its own; gives its uid. */
export const newPack = async (platform: Pick<TestPlatform, 'app'>, headers: Headers) =>
  uidOf(await uploadPack(platform, tarOf(smallPack(`p-${randomUUID()}`)), headers))

/** Imports a profile with a name of its own; gives its uid. */
export const newProfile = async (platform: Pick<TestPlatform, 'app'>, headers: Headers) =>
  uidOf(await importProfile(platform, JSON.stringify(smallProfile(`c-${randomUUID()}`)), headers))
