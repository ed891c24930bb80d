import { Command, OnlyAdministrators, PageHeader } from '../../shared/parts.tsx'
import { remote, text } from '../platform.ts'

/** A page that only administrators of the tenant read, for others. */
export const TenantOnly = ({ title, command }: { title: string; command: string }) => (
  <>
    <PageHeader title={title} />
    <OnlyAdministrators>{text.value.audit.adminOnly}</OnlyAdministrators>
    <Command command={remote(command)} />
  </>
)
