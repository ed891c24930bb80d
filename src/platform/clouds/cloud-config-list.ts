import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { labelFilters } from '../label-filters.ts'
import { VendorCloudConfig } from '../schemas/cloud-configs.ts'
import type { CloudConfigRecord } from './cloud-config-store.ts'

/** What queries of the list of cloud configurations may name. */
export const cloudConfigList: ListResource<SqlField> = {
  name: 'cloud configurations',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.cloudAccountRef.uid': textColumn('account_uid'),
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
