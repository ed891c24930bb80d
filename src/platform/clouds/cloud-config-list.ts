import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import type { SqlField } from '../../lists/sql.ts'
import { labelFilters } from '../label-filters.ts'
import { VendorCloudConfig } from '../schemas/cloud-configs.ts'
import type { CloudConfigRecord } from './cloud-config-store.ts'

const text = (column: string): SqlField => ({ type: 'text', column })

/** What queries of the list of cloud configurations may name. */
export const cloudConfigList: ListResource<SqlField> = {
  name: 'cloud configurations',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': text('uid'),
    'metadata.name': text('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.cloudAccountRef.uid': text('account_uid'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: VendorCloudConfig,
}

/** A cloud configuration in the API. Pure. */
export const toVendorCloudConfig = (config: CloudConfigRecord, accountName: string): VendorCloudConfig => ({
  ...{ apiVersion: 'v1', kind: 'VendorCloudConfig' },
  metadata: {
    ...{ annotations: config.annotations, labels: config.labels, name: config.name, uid: config.uid },
    creationTimestamp: formatTime(config.createdAt),
    lastModifiedTimestamp: formatTime(config.createdAt),
  },
  spec: {
    cloudAccountRef: { kind: 'VendorAccount', name: accountName, uid: config.accountUid },
    machinePoolConfig: [...config.pools],
  },
  status: {},
})
