import { masked } from '../../base/mask.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { labelFilters } from '../label-filters.ts'
import { VendorAccount } from '../schemas/cloud-accounts.ts'
import type { CloudAccountHead } from './cloud-account-store.ts'

/** What queries of the list of cloud accounts may name. */
export const cloudAccountList: ListResource<SqlField> = {
  name: 'cloud accounts',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.secretId': textColumn('secret_id'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: VendorAccount,
}

/** A cloud account in the API. Pure. */
export const toVendorAccount = (account: CloudAccountHead): VendorAccount => ({
  ...{ apiVersion: 'v1', kind: 'VendorAccount' },
  metadata: {
    ...{ annotations: account.annotations, labels: account.labels, name: account.name, uid: account.uid },
    creationTimestamp: formatTime(account.createdAt),
    lastModifiedTimestamp: formatTime(account.createdAt),
  },
  spec: { secretId: account.secretId, secretKey: masked },
  status: {},
})
