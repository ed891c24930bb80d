import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { PackSummary } from '../schemas/packs.ts'
import type { PackRecord } from './pack-store.ts'

/** What queries of the list of packs may name. */
export const packList: ListResource<SqlField> = {
  name: 'packs',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.name': textColumn('name'),
    'spec.version': textColumn('version'),
    'spec.displayName': { ...textColumn('display_name'), isOrdered: false },
    'spec.layer': { ...textColumn('layer'), isOrdered: false },
    'spec.addonType': { ...textColumn('addon_type'), isOrdered: false },
    'spec.sizeBytes': { type: 'integer', column: 'size_bytes' },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: PackSummary,
}

export const toPackSummary = (pack: PackRecord): PackSummary => ({
  apiVersion: 'v1',
  kind: 'Pack',
  metadata: {
    ...{ annotations: {}, labels: {}, name: pack.name, uid: pack.uid },
    creationTimestamp: formatTime(pack.createdAt),
    lastModifiedTimestamp: formatTime(pack.createdAt),
  },
  spec: {
    ...{ addonSubType: pack.addonSubType, addonType: pack.addonType, cloudTypes: [...pack.cloudTypes] },
    ...{ displayName: pack.displayName, layer: pack.layer, name: pack.name, annotations: pack.annotations },
    ...{ digest: `sha256:${pack.digest}`, eol: pack.eol, group: pack.group, sizeBytes: pack.sizeBytes },
    manifests: pack.manifests.map((name) => ({ kind: 'manifest', name })),
    ...{ type: 'spectro', version: pack.version },
  },
  status: {},
})
