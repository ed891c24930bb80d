/** What another source knows of the hardware, taken where the kernel's files, and NVIDIA's driver, leave it open. */
export interface Supplement {
  /** The maker of a disk, by the kernel's name of it and its size in whole GiB. */
  diskVendor(name: string, size: number): string | undefined
  /** A display controller, by its PCI address such as `0000:11:00.0`. */
  display(address: string): DisplaySupplement | undefined
}

export interface DisplaySupplement {
  readonly vendor?: string
  readonly model?: string
  readonly memoryMiB?: number
}
